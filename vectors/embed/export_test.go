package embed

// For tests of the arithmetic.
var (
	Log2         = log2
	Rarity       = rarity
	CountWeights = &countWeights
)

const (
	HeaderSize = headerSize
	MaxText    = maxText
)
