// Package note lets a test of a rig say in its line of the report what it saw: how much
// was compared, or how often something happened.
//
// Start reading at [Printf]. It imports nothing but the standard library.
package note
