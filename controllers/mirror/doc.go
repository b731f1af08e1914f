// Package mirror decides which comments on which issues, and which labels, GitHub should have for a tree.
//
// [Project] is a pure function of the tree. Its output changes when an object changes, and never because time passes: a
// comment is edited on transitions only, and an unchanged tree causes no call.
//
// Each comment has a key that names its content:
//
//	status/<kind>/<name>         how a session, a DAG or a question stands
//	round/<CLR id>/<n>           what was asked and answered in one round
//	escalation/<CLR id>/<n>      what people are asked to decide, who are mentioned in it
//	issue/<kind>/<name>          the body of an issue that was made for an object
//	reply/<id>                   what is said to the author of a comment
//	plan/<number>                what a pull request would do ([Pull])
//
// The comment ends with an invisible marker that cannot be forged: its key, and a MAC of key and text ([Keys]). So a
// comment is recognized when its id was lost, and one that a user edited no longer counts as ours.
//
// Output of agents is untrusted. It is quoted, and shown as text: it mentions no users, refers to no issues, has no
// links and no HTML, and ends no comment early. Only emphasis, lists and code keep their form.
package mirror
