package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// MDIOAddress is the value of MAC_MDIO_Address.
type MDIOAddress uint32

// Bits of MAC_MDIO_Address.
const (
	MDIOGB   MDIOAddress = 1 << 0 // busy; setting it starts the transaction
	MDIOC45E MDIOAddress = 1 << 1 // clause 45

	MDIOGOC mmio.Field[MDIOAddress] = 0x3 << 2 // operation
	MDIOCR  mmio.Field[MDIOAddress] = 0xf << 8 // divider of the CSR clock
	MDIORDA mmio.Field[MDIOAddress] = 0x1f << 16
	MDIOPA  mmio.Field[MDIOAddress] = 0x1f << 21
)

// Values of GOC.
const (
	MDIOGOCWrite = 1
	MDIOGOCRead  = 3
)

// MDIOData is the value of MAC_MDIO_Data.
type MDIOData uint32

// Fields of MAC_MDIO_Data.
const (
	MDIOGD mmio.Field[MDIOData] = 0xffff << 0
	MDIORA mmio.Field[MDIOData] = 0xffff << 16 // clause 45 register
)
