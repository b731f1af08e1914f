package tools

import "testing"

// TestLonger: a limit of time that is raised is told, one that is lowered, and another number, is not.
func TestLonger(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          int
	}{
		{"ctx, cancel := context.WithTimeout(ctx, 5*time.Second)\n", "ctx, cancel := context.WithTimeout(ctx, 500*time.Second)\n", 1},
		{"ctx, cancel := context.WithTimeout(ctx, 5*time.Second)\n", "\tctx, cancel := context.WithTimeout(ctx, 1*time.Second)\n", 0},
		{"  jest.setTimeout(1_000);\n", "  jest.setTimeout(60_000);\n", 1},
		{"@pytest.mark.timeout(1)\n", "@pytest.mark.timeout(1.5)\n", 1},
		{"retries = 5\n", "retries = 50\n", 0},
		{"", "ctx, cancel := context.WithTimeout(ctx, 500*time.Second)\n", 0},
	} {
		if got := longer([]byte(c.before), []byte(c.after)); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.before, c.after, got, c.want)
		}
	}
}
