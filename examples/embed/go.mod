module github.com/gostmmac/gostmmac/examples/embed

go 1.26.3

require github.com/gostmmac/gostmmac v0.0.0

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/rs/zerolog v1.35.1 // indirect
	github.com/u-root/u-root v0.16.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/gostmmac/gostmmac => ../..
