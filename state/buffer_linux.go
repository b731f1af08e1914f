package state

// use has read put its content into buf if there is room.
func (d *folder) use(buf []byte) { d.content = buf }
