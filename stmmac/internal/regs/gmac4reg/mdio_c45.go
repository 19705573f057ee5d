package gmac4reg

import "github.com/gostmmac/gostmmac/mmio"

// Bits of MAC_MDIO_Address beside those that a simple access needs.
const (
	MDIOSKAP MDIOAddress = 1 << 4  // clause 45 without the address frame
	MDIOBTB  MDIOAddress = 1 << 26 // back to back transactions
	MDIOPSE  MDIOAddress = 1 << 27 // preamble suppression

	MDIONTC mmio.Field[MDIOAddress] = 0x7 << 12 // trailing clocks
)

// MDIOGOCPostRead is the value of GOC that reads a clause 45 register and then
// increments the address that the PHY holds.
const MDIOGOCPostRead = 2
