package embed

import (
	"encoding/binary"
	"errors"
)

// Learner counts the texts that contain each word and piece, and returns the features of each text, so that it is cut
// only once. It takes a few megabytes. It is not safe for concurrent use: each goroutine needs its own.
type Learner struct {
	counter
	title, body bag
}

// NewLearner makes a learner that has no texts.
func NewLearner() *Learner { return &Learner{counter: newCounter()} }

// Add counts the features of the title and body of a text that occurs that many times, and appends the features to
// data, for [Builtin.EmbedFeatures].
func (l *Learner) Add(data []byte, text string, times int) []byte {
	title, body := fields(text)
	l.title.fill(title)
	l.body.fill(body)
	l.docs += uint64(times)
	for _, f := range l.body.features {
		l.count(f.hash, uint32(times))
	}
	for _, f := range l.title.features {
		if !l.body.has(f.hash) {
			l.count(f.hash, uint32(times))
		}
	}
	return appendFeatures(appendFeatures(data, l.title.features), l.body.features)
}

// Learned makes a built-in embedder of the document frequencies of features that learners counted, in whatever order.
// Its vectors will have dimensions numbers, from 1 to [MaxDimensions].
func Learned(dimensions int, learners ...*Learner) *Builtin {
	all := newCounter()
	for _, l := range learners {
		all.docs += l.docs
		for i, n := range l.df {
			all.df[i] += n
		}
	}
	return newBuiltin(&all, dimensions)
}

// featureSize is how many bytes a feature takes: its hash, and how often it counts.
const featureSize = 9

var errCutOff = errors.New("features of texts are cut off")

// EmbedFeatures embeds the text whose features begin data: it cuts the features of title and body off data, and sets
// out, which has one number per dimension, to the vector that Embed returns for the text. It returns the rest of data.
// The error reports that data is cut off.
func (b *Builtin) EmbedFeatures(data []byte, out []float32) (rest []byte, err error) {
	title, rest, err := cutFeatures(data)
	if err != nil {
		return nil, err
	}
	body, rest, err := cutFeatures(rest)
	if err != nil {
		return nil, err
	}
	s := b.take()
	defer b.scratch.Put(s)
	s.begin()
	b.sumUp(title, s.title)
	b.sumUp(body, s.body)
	s.finish(out)
	return rest, nil
}

// sumUp adds features, as encoded by appendFeatures, to the sum of a field.
func (b *Builtin) sumUp(features []byte, sum []int32) {
	for ; len(features) >= featureSize; features = features[featureSize:] {
		b.addFeature(feature{binary.LittleEndian.Uint64(features), uint32(features[featureSize-1])}, sum)
	}
}
