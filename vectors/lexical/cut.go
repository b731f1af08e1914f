package lexical

// Cutter cuts texts into terms, one text after the other, without allocating for each. The zero value is ready. It is not
// safe for concurrent use.
type Cutter struct{ cutter cutter }

// Cut calls yield with each of the [Terms] of a text, in their order. The bytes are valid during the call.
func (c *Cutter) Cut(text string, yield func(term []byte)) { c.cutter.cut(text, yield) }
