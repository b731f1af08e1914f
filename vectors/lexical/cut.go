package lexical

// Numberer cuts texts into terms, and numbers these from 0 in the order in which they first come. It is fast where texts
// are like those before, which it remembers. It is not safe for concurrent use.
type Numberer struct{ numberer numberer }

// NewNumberer is one for texts of about so many bytes together.
func NewNumberer(bytes int) *Numberer { return &Numberer{newNumberer(bytes)} }

// Append appends the numbers of the [Terms] of a text, in their order.
func (n *Numberer) Append(numbers []uint32, text string) []uint32 {
	return n.numberer.numbers(numbers, text)
}

// Len is how many terms have a number.
func (n *Numberer) Len() int { return len(n.numberer.ends) }

// Term is the term of a number, valid until the next text.
func (n *Numberer) Term(number uint32) []byte { return n.numberer.text(number) }
