package bus

import "github.com/gostmmac/gostmmac/stmmac/sim"

// plugTAP makes the wire of a wire=tap.
func plugTAP(h *Handle, s *simSpec) (sim.Wire, error) {
	w, err := sim.NewTAP(s.name)
	if err != nil {
		return nil, &AddressError{Address: h.Address.String(), Part: "wire=tap:" + s.name, Err: err}
	}
	h.TAP = w
	return w, nil
}
