// Package clitest runs the commands of the examples in their tests.
//
// Start reading at [Run]. It imports nothing of the module.
package clitest
