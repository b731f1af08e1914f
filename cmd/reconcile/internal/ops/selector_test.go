package ops

import "testing"

func TestSelector(t *testing.T) {
	labels := map[string]string{"team": "core", "tier": "1", "empty": ""}
	for text, want := range map[string]bool{
		"": true, "team=core": true, "team==core": true, "team=web": false, "team!=web": true, "team!=core": false,
		"team": true, "none": false, "!none": true, "!team": false, "none!=x": true, "empty=": true, "empty": true,
		"team=core,tier=1": true, "team=core, tier=2": false, " team = core ": true,
		"team in (core, web)": true, "team in (web)": false, "team notin (web),tier in (1,2)": true, "team notin (core)": false,
		"none notin (x)": true, "none in (x)": false, "empty in ()": true, "! none": true,
	} {
		s, err := parseSelector(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got := s.matches(labels); got != want {
			t.Errorf("%q matches %v: %t", text, labels, got)
		}
	}
	for _, text := range []string{"=x", "!", "!=x", "a=b,=c", "a b", "team in core", "team in (core", "team of (core)", "a=b=c", "a,(b)"} {
		if s, err := parseSelector(text); err == nil {
			t.Errorf("%q was read as %+v", text, s)
		}
	}
}
