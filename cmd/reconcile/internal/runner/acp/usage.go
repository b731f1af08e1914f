package acp

import "encoding/json"

// Usage counts tokens as an agent reports them.
type Usage struct {
	TotalTokens       int64 `json:"totalTokens"`
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	ThoughtTokens     int64 `json:"thoughtTokens"`
	CachedReadTokens  int64 `json:"cachedReadTokens"`
	CachedWriteTokens int64 `json:"cachedWriteTokens"`
}

// usage returns the tokens of the turn, from the field of the protocol, else from _meta.quota, and the model, if it is
// named; nil if the answer has none.
func (a *Answer) usage() (u *Usage, model string) {
	var m struct {
		Quota struct {
			Count  *count `json:"token_count"`
			Models []struct {
				Model string `json:"model"`
			} `json:"model_usage"`
		} `json:"quota"`
	}
	decodeLoosely(a.Meta, &m)
	if len(m.Quota.Models) > 0 {
		model = oneLine(m.Quota.Models[0].Model, titleLimit)
	}
	switch {
	case a.Usage != nil:
		u = a.Usage
	case m.Quota.Count != nil:
		u = m.Quota.Count.usage()
	}
	return u.bounded(), model
}

// Input returns the number of input tokens, with the cached ones. Whether InputTokens includes these depends on the agent;
// its total tells.
func (u *Usage) Input() int64 {
	n := max(u.InputTokens, u.TotalTokens-u.OutputTokens)
	if cached := u.CachedReadTokens + u.CachedWriteTokens; n < cached {
		n += cached
	}
	return n
}

// count has the names that agents use in addition to those of the protocol.
type count struct {
	Usage
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	Cached     int64 `json:"cachedInputTokens"`
	Prompt     int64 `json:"promptTokens"`
	Completion int64 `json:"completionTokens"`
	CachedOld  int64 `json:"cachedTokens"`
}

func (c *count) usage() *Usage {
	u := c.Usage
	u.InputTokens = firstOf(u.InputTokens, c.Input, c.Prompt)
	u.OutputTokens = firstOf(u.OutputTokens, c.Output, c.Completion)
	u.CachedReadTokens = firstOf(u.CachedReadTokens, c.Cached, c.CachedOld)
	return &u
}

// tokensLimit bounds what an agent may claim, so that sums cannot overflow.
const tokensLimit = 1 << 40

// bounded replaces what cannot be.
func (u *Usage) bounded() *Usage {
	if u == nil {
		return nil
	}
	for _, n := range []*int64{&u.TotalTokens, &u.InputTokens, &u.OutputTokens, &u.ThoughtTokens, &u.CachedReadTokens, &u.CachedWriteTokens} {
		*n = min(max(*n, 0), tokensLimit)
	}
	return u
}

// tokens adds the tokens in the _meta of a part of a message.
func (f *updateFold) tokens(meta json.RawMessage) {
	var m struct {
		Usage *count `json:"usage"`
	}
	if !f.active || !decodeLoosely(meta, &m) || m.Usage == nil {
		return
	}
	u := m.Usage.usage().bounded()
	if f.Chunks == nil {
		f.Chunks = new(Usage)
	}
	f.Chunks.TotalTokens += u.TotalTokens
	f.Chunks.InputTokens += u.InputTokens
	f.Chunks.OutputTokens += u.OutputTokens
	f.Chunks.ThoughtTokens += u.ThoughtTokens
	f.Chunks.CachedReadTokens += u.CachedReadTokens
	f.Chunks.CachedWriteTokens += u.CachedWriteTokens
	f.Chunks.bounded()
}
