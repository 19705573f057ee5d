// Embed shows how a program drives a MAC through a transport of its own.
package main
