// Package checksum finds and computes the Internet checksums of frames in
// packet buffers: for those that the device is asked to insert and cannot.
//
// Start reading at [Parse]. Sources: RFC 1071 and 1624 for the sum, RFC 791,
// 8200, 768, 9293, 792 and 4443 for where it stands. It may import pagepool.
package checksum
