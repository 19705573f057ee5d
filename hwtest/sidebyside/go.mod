module github.com/gostmmac/gostmmac/hwtest/sidebyside

go 1.26.3

replace github.com/gostmmac/gostmmac => ../..
