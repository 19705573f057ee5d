package vfio

import "github.com/u-root/u-root/pkg/pci"

// readPCI reads the ids and resources of the function whose directory is dir.
// OnePCI alone: what names vendors links a table of 1.2 MB.
func (i *Info) readPCI(dir string) error {
	p, err := pci.OnePCI(dir)
	if err != nil {
		return err
	}
	i.Vendor, i.Device, i.Class = p.Vendor, p.Device, p.Class
	for _, b := range p.BARS {
		const rom = 6
		if b.Index > rom || b.Lim < b.Base {
			continue
		}
		i.BARs = append(i.BARs, BAR{Index: b.Index, Base: b.Base, Size: b.Lim - b.Base + 1})
	}
	return nil
}
