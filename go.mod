module reconcile.dev/reconcile

go 1.26.0

require (
	github.com/FastFilter/xorfilter v0.4.2-0.20260120015552-4e5a4d9df65a // which words a domain has, in 10 bits each
	github.com/aymanbagabas/go-udiff v0.4.1 // unified diffs of texts
	github.com/bmatcuk/doublestar/v4 v4.10.4 // ** in globs of inputs
	github.com/cespare/xxhash/v2 v2.3.0 // fingerprints and checksums of caches
	github.com/dlclark/regexp2/v2 v2.5.1 // cuts texts into what tokens are made of
	github.com/expr-lang/expr v1.17.8 // the language of when
	github.com/fsnotify/fsnotify v1.10.1 // reconcile --watch
	github.com/go-enry/go-enry/v2 v2.9.6 // the languages of files by their names, as a table (generator only)
	github.com/go-git/go-billy/v5 v5.9.2 // go-git's view of files
	github.com/go-git/go-git/v5 v5.19.3 // commits without a git command
	github.com/gofrs/flock v0.13.1 // file locks, but for the leases of runs
	github.com/google/go-github/v60 v60.0.0 // the API of GitHub: its types, paths and encoding
	github.com/hinshun/vt10x v0.0.0-20220301184237-5011da428d02 // a terminal without a screen (tests only)
	github.com/invopop/jsonschema v0.14.0 // JSON Schemas from the Go types (generator only)
	github.com/landlock-lsm/go-landlock v0.11.0 // what agents may write, limited by the kernel
	github.com/pelletier/go-toml/v2 v2.4.3 // workflows in TOML
	github.com/rivo/uniseg v0.4.7 // the width of text in tables
	github.com/robfig/cron/v3 v3.0.1 // cron expressions, as Kubernetes reads them; this project has the time zones and changes of clocks
	github.com/rogpeppe/go-internal v1.16.0 // testscript (tests only)
	github.com/santhosh-tekuri/jsonschema/v5 v5.3.1 // decides what is wrong with a spec, and judges what nodes leave by schemas of users
	github.com/segmentio/encoding v0.5.4 // decodes canonical JSON and state files thrice as fast as encoding/json
	github.com/spf13/cobra v1.10.2 // the command line
	github.com/spf13/pflag v1.0.9 // cobra's flags
	github.com/tiktoken-go/tokenizer v0.10.0 // the expression that cuts, compiled, and what counts are tested against
	github.com/viterin/vek v0.4.3 // float32 vectors by AVX2
	github.com/yuin/goldmark v1.8.7 // what of a comment on GitHub is text, and what code or a quotation
	go.yaml.in/yaml/v2 v2.4.2 // YAML output with keys that are longer than sigs.k8s.io/yaml reads
	go.yaml.in/yaml/v3 v3.0.6 // YAML nodes with positions
	golang.org/x/mod v0.42.0 // reads go.mod
	golang.org/x/sys v0.49.0 // locks, process groups, directory scans, what the processor can do
	golang.org/x/term v0.47.0 // is it a terminal, and how wide
	golang.org/x/tools v0.52.0 // import rules and txtar (tests only)
	k8s.io/client-go v0.34.2 // -o jsonpath, as kubectl reads it
	mvdan.cc/sh/v3 v3.13.1 // parses what agents want a shell to run
	sigs.k8s.io/yaml v1.6.0 // YAML output, by the JSON form of values
)

require (
	dario.cat/mergo v1.0.0 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/ProtonMail/go-crypto v1.1.6 // indirect
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/chewxy/math32 v1.10.1 // indirect
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/cyphar/filepath-securejoin v0.6.1 // indirect
	github.com/emirpasic/gods v1.18.1 // indirect
	github.com/go-enry/go-oniguruma v1.2.1 // indirect
	github.com/go-git/gcfg v1.5.1-0.20230307220236-3a3c6141e376 // indirect
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8 // indirect
	github.com/google/go-querystring v1.1.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jbenet/go-context v0.0.0-20150711004518-d14ea06fba99 // indirect
	github.com/kevinburke/ssh_config v1.2.0 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.1 // indirect
	github.com/pjbgf/sha1cd v0.7.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/segmentio/asm v1.1.3 // indirect
	github.com/sergi/go-diff v1.3.2-0.20230802210424-5b0b94c5c0d3 // indirect
	github.com/skeema/knownhosts v1.3.1 // indirect
	github.com/viterin/partial v1.1.0 // indirect
	github.com/xanzy/ssh-agent v0.3.3 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.2 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20260410095643-746e56fc9e2f // indirect
	golang.org/x/net v0.61.0 // indirect
	gopkg.in/warnings.v0 v0.1.2 // indirect
	kernel.org/pub/linux/libs/security/libcap/psx v1.2.77 // indirect
)
