package lexical

// EachTerm calls yield with every term, in the order of their bytes, and with what calls its argument with the number of
// each document that has the term, ascending. The bytes are valid during the call. The error is ErrDamaged, if any.
func (x *Index) EachTerm(yield func(term []byte, docs func(func(doc uint32)))) error {
	for n := range x.terms {
		text, ok := x.text(n)
		if !ok {
			return ErrDamaged
		}
		l, ok := x.list(n)
		if !ok {
			return ErrDamaged
		}
		yield(text, func(each func(uint32)) { l.each(func(doc uint32, _ uint8) { each(doc) }) })
	}
	return nil
}
