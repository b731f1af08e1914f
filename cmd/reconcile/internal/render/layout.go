package render

import (
	"cmp"
	"slices"

	"reconcile.dev/reconcile/controllers/graph"
)

// The dimensions of a picture, in pixels.
const (
	boxHeight  = 42.0
	boxGap     = 14.0
	laneHeight = 6.0 // height of a line that passes a column
	columnGap  = 56.0
	charWidth  = 7.3 // of 12 px monospace
	boxPadding = 12.0
	margin     = 20.0
	maxLanes   = 50000 // with more, long lines are drawn straight
	sweeps     = 12
)

// spot is a position in a column: a node's box, or a lane for a line that passes the column.
type spot struct {
	node   int // index into Picture.Nodes; -1 for a lane
	column int
	width  float64
	height float64
	x, y   float64 // of the middle of the left edge
	before []*spot // neighbours in the column to the left
	after  []*spot // and to the right
	order  int     // within the column
}

// line is one edge: the spots that it passes, with a box at each end.
type line []*spot

// layout places the nodes in columns by the longest chain of needs, so that every line goes from left to right, and
// orders and shifts each column so that lines cross little and run straight (after Sugiyama, Tagawa and Toda, 1981:
// layers, barycentre ordering; the shift is a least squares fit by pooling adjacent violators).
type layout struct {
	columns [][]*spot
	lines   []line
	width   float64
	height  float64
}

func newLayout(g graph.Picture) *layout {
	l := &layout{}
	spots := l.place(g)
	l.connect(g, spots)
	for range sweeps {
		l.sweep(sortColumn)
	}
	l.stack()
	for range sweeps {
		l.sweep(fit)
	}
	l.measure()
	return l
}

// place creates a spot for each node, in its column.
func (l *layout) place(g graph.Picture) []*spot {
	columns := columnsOf(g)
	spots := make([]*spot, len(g.Nodes))
	for i, n := range g.Nodes {
		chars := max(textWidth(Line(n.Name)), textWidth(Line(n.Caption())))
		spots[i] = &spot{node: i, column: columns[i], height: boxHeight, width: float64(chars)*charWidth + 2*boxPadding}
		l.put(spots[i])
	}
	return spots
}

func (l *layout) put(s *spot) {
	for len(l.columns) <= s.column {
		l.columns = append(l.columns, nil)
	}
	s.order = len(l.columns[s.column])
	l.columns[s.column] = append(l.columns[s.column], s)
}

// columnsOf returns for each node the length of the longest chain of needs before it. Nodes of a cycle, which a valid
// object does not have, stay in column 0.
func columnsOf(g graph.Picture) []int {
	columns := make([]int, len(g.Nodes))
	waits := make([]int, len(g.Nodes))
	next := make([][]int, len(g.Nodes))
	g.Edges(func(from, to int) {
		waits[to]++
		next[from] = append(next[from], to)
	})
	var ready []int
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, j := range next[i] {
			columns[j] = max(columns[j], columns[i]+1)
			if waits[j]--; waits[j] == 0 {
				ready = append(ready, j)
			}
		}
	}
	return columns
}

// connect creates the lines, with a lane in each column that a line passes.
func (l *layout) connect(g graph.Picture, spots []*spot) {
	lanes := 0
	g.Edges(func(from, to int) {
		a, b := spots[from], spots[to]
		if a.column >= b.column {
			return
		}
		way := line{a}
		if lanes += b.column - a.column - 1; lanes <= maxLanes {
			for c := a.column + 1; c < b.column; c++ {
				lane := &spot{node: -1, column: c, height: laneHeight}
				l.put(lane)
				way = append(way, lane)
			}
		}
		way = append(way, b)
		for i := 1; i < len(way); i++ {
			way[i-1].after = append(way[i-1].after, way[i])
			way[i].before = append(way[i].before, way[i-1])
		}
		l.lines = append(l.lines, way)
	})
}

// sweep arranges each column by the neighbours of its spots, once from left to right and once back.
func (l *layout) sweep(arrange func(column []*spot, neighbours func(*spot) []*spot)) {
	for _, column := range l.columns {
		arrange(column, func(s *spot) []*spot { return s.before })
	}
	for _, column := range slices.Backward(l.columns) {
		arrange(column, func(s *spot) []*spot { return s.after })
	}
}

// sortColumn orders a column by the mean position of the neighbours.
func sortColumn(column []*spot, neighbours func(*spot) []*spot) {
	keys := make(map[*spot]float64, len(column))
	for _, s := range column {
		keys[s] = layoutMean(neighbours(s), float64(s.order), func(n *spot) float64 { return float64(n.order) })
	}
	slices.SortStableFunc(column, func(a, b *spot) int { return cmp.Compare(keys[a], keys[b]) })
	for i, s := range column {
		s.order = i
	}
}

// layoutMean returns the mean of f over spots, or otherwise without any.
func layoutMean(spots []*spot, otherwise float64, f func(*spot) float64) float64 {
	if len(spots) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, s := range spots {
		sum += f(s)
	}
	return sum / float64(len(spots))
}

// stack sets the initial height of every spot: columns are centred on a common axis.
func (l *layout) stack() {
	for _, column := range l.columns {
		y := 0.0
		for i, s := range column {
			if i > 0 {
				y += layoutDistance(column[i-1], s)
			}
			s.y = y
		}
		for _, s := range column {
			s.y -= y / 2
		}
	}
}

// layoutDistance returns the minimum distance between the middles of two neighbours of a column.
func layoutDistance(a, b *spot) float64 { return (a.height+b.height)/2 + boxGap }

// fit moves a column's spots as close to their neighbours' heights as order and distances allow. It is isotonic regression: after the minimum distances are subtracted, the desired heights must not decrease; neighbours
// that would are set to their mean.
func fit(column []*spot, neighbours func(*spot) []*spot) {
	type block struct{ sum, count float64 }
	var blocks []block
	offset := 0.0
	offsets := make([]float64, len(column))
	for i, s := range column {
		if i > 0 {
			offset += layoutDistance(column[i-1], s)
		}
		offsets[i] = offset
		wish := layoutMean(neighbours(s), s.y, func(n *spot) float64 { return n.y })
		blocks = append(blocks, block{wish - offset, 1})
		for n := len(blocks); n > 1 && blocks[n-2].sum*blocks[n-1].count > blocks[n-1].sum*blocks[n-2].count; n-- {
			blocks[n-2].sum += blocks[n-1].sum
			blocks[n-2].count += blocks[n-1].count
			blocks = blocks[:n-1]
		}
	}
	i := 0
	for _, b := range blocks {
		for range int(b.count) {
			column[i].y = b.sum/b.count + offsets[i]
			i++
		}
	}
}

// measure sets the x and width of columns, and makes all coordinates positive.
func (l *layout) measure() {
	top, bottom := 0.0, 0.0
	x := margin
	for i, column := range l.columns {
		if i > 0 {
			x += columnGap
		}
		width := 0.0
		for _, s := range column {
			width = max(width, s.width)
			top, bottom = min(top, s.y-s.height/2), max(bottom, s.y+s.height/2)
		}
		for _, s := range column {
			s.x, s.width = x, width
		}
		x += width
	}
	for _, column := range l.columns {
		for _, s := range column {
			s.y -= top
		}
	}
	l.width, l.height = x+margin, bottom-top
}
