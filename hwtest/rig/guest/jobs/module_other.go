//go:build !linux

package jobs

import "errors"

func loadModule(string, string) error { return errors.ErrUnsupported }
func unloadModule(string) error       { return errors.ErrUnsupported }
