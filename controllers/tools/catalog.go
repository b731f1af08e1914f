// Package tools knows the tools with which projects check their code, and decides from the files of a project which of them it uses.
package tools

import "reconcile.dev/reconcile/controllers/checks"

// Tool is an entry of the catalogue.
type Tool struct {
	Name      string            `json:"name"`
	Languages []string          `json:"languages"`          // lower case, as the catalogue lists them
	Program   string            `json:"program"`            // on the PATH, or in a folder of the project such as node_modules/.bin
	Wrapper   string            `json:"wrapper,omitempty"`  // the program in the folder of a project, or above, that runs the version which the project wants, in place of Program
	Source    string            `json:"source"`             // where the facts of this entry were read
	Configs   []string          `json:"configs,omitempty"`  // files, globs, or FILE#MEMBER.MEMBER of JSON, TOML and YAML, whose presence says that the tool is used
	Marks     []string          `json:"marks,omitempty"`    // files that say that the tool is used and configure nothing: they count where it was found in no folder above
	Unless    []string          `json:"unless,omitempty"`   // files of tools that build: beside them it cannot check alone, and does not count where it is merely installed
	Packages  map[string]string `json:"packages,omitempty"` // the name in a manifest, by ecosystem, as package manifests names them
	Version   []string          `json:"version,omitempty"`  // arguments that print the version; none: --version
	Install   map[string]string `json:"install,omitempty"`  // the argument of a package manager, by its name: npm, pip, uv, go, cargo, dotnet, gem
	// Leaves are the folders, which end with a slash, and the files that it leaves beside the files of a name or pattern, or beside a folder; of "" in any folder. As output they
	// are no files of the project where git does not track them.
	Leaves map[string][]string `json:"leaves,omitempty"`
	// Replaces are the tools that see less of the same files, and do not count in a folder where the project names this one.
	Replaces []string `json:"replaces,omitempty"`
	// Opted says that it counts only where the project names it, not where it is merely installed.
	Opted bool `json:"opted,omitempty"`
	// Deep says that its check of a folder includes all below, whatever configuration they have.
	Deep bool `json:"deep,omitempty"`
	// Workspace says that its check of the root of a workspace of Cargo includes all members.
	Workspace bool     `json:"workspace,omitempty"`
	Pros      []string `json:"pros,omitempty"` // what speaks for it, in a few words each, for people who have to choose
	Cons      []string `json:"cons,omitempty"`
	Roles     []Role   `json:"roles"`
}

// Role is what a tool does in one category.
type Role struct {
	Category       checks.Category `json:"category"`
	Since          string          `json:"since,omitempty"`          // the first version to which this entry applies, and
	Before         string          `json:"before,omitempty"`         // the first one to which it does not
	Where          []string        `json:"where,omitempty"`          // configurations, as Configs has them, with one of which it applies, in place of the entries after it
	Check          []string        `json:"check,omitempty"`          // changes no file; see [Job] for the placeholders
	Build          []string        `json:"build,omitempty"`          // builds what Check runs, which else would be as old as the last build; another program
	Fix            []string        `json:"fix,omitempty"`            // changes files
	Whole          []string        `json:"whole"`                    // stands for {files} when the whole folder is checked; none: ., or ./... for {packages}; an empty list: nothing
	Scoped         []string        `json:"scoped,omitempty"`         // configurations, as Configs has them, that name what is checked: with one of them nothing stands for {files}
	Extensions     []string        `json:"extensions,omitempty"`     // of the files that it is about, as .go; none: all files
	Scripts        bool            `json:"scripts,omitempty"`        // it is also about files without an extension whose first line says that they are in the language
	Output         string          `json:"output,omitempty"`         // the format of the output of Check, by its name in controllers/checks/formats
	Report         string          `json:"report,omitempty"`         // the file with the output where it is not stdout: {report} in Check; {report}/ for a folder that has to be there
	Reports        []string        `json:"reports,omitempty"`        // the reports that it writes into the project, where it has no Report: patterns of path.Match for the ends of their paths, in any folder
	Stream         string          `json:"stream,omitempty"`         // stdout, stderr or both; none: stdout
	Clean          []int           `json:"clean,omitempty"`          // exit codes without findings or failures; none: 0
	Found          []int           `json:"found,omitempty"`          // exit codes with findings or failures; none: 1
	Fresh          []string        `json:"fresh,omitempty"`          // variables that name the folder of a cache by which it takes a file of the same time and size for the same: it gets an empty one
	List           bool            `json:"list,omitempty"`           // it takes files only, so that all are named when the whole folder is checked
	TestFiles      []string        `json:"testFiles,omitempty"`      // patterns of path.Match for the names of files with tests
	One            []string        `json:"one,omitempty"`            // runs one test: {test}, {suite}, {file}
	Coverage       []string        `json:"coverage,omitempty"`       // as Check, and writes {coverage}
	CoverageOutput string          `json:"coverageOutput,omitempty"` // the format of {coverage}
	Control        *Control        `json:"control,omitempty"`
}

// Control is a positive control: files in a folder of their own in which a working tool finds something.
type Control struct {
	Files map[string]string `json:"files"`
}

// Confidence says how sure it is that a project uses a tool.
type Confidence string

// The confidences: a configuration file or a person's choice, a manifest, or a file of CI or a program that is merely installed.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Discovered is a tool that a folder of a project uses.
type Discovered struct {
	Tool       string          `json:"tool"`
	Category   checks.Category `json:"category"`
	Language   string          `json:"language"`
	Folder     string          `json:"folder"` // below the root, with slashes; "" is the root
	Confidence Confidence      `json:"confidence"`
	Tier       int             `json:"tier"`              // 1: by a scan, 2: by a knowledge agent, 3: by a person
	Why        string          `json:"why"`               // in words
	Config     string          `json:"config,omitempty"`  // the file that says so, below the root
	Program    string          `json:"program,omitempty"` // the path of the program; "" if it is not installed
	Version    string          `json:"version,omitempty"`
	// Unversioned says why the program did not tell its version in time; "" if it was not late.
	Unversioned string   `json:"versionUnknown,omitempty"`
	Check       []string `json:"check,omitempty"`    // the command that checks the whole folder, to be run in Folder
	Own         []string `json:"own,omitempty"`      // the command of the team for the whole folder, which is Check then
	OwnFound    int      `json:"ownFound,omitempty"` // its exit code for findings, where it is another one
	Fix         []string `json:"fix,omitempty"`
	Install     []string `json:"install,omitempty"` // the command that would install it
	Role        Role     `json:"-"`                 // that applies to the version
	Scripts     []string `json:"-"`                 // the files without an extension that it is about, below the root
}
