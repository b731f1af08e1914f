// Package mirror decides what should stand on GitHub for a tree: which comments on which issue, and which labels.
//
// [Project] is a pure function of the tree. What it says changes when something becomes of an object, and never because
// time passes: a comment is edited on transitions only, and a tree that stands still causes no call.
//
// Each comment has a key, which says what it shows:
//
//	status/<kind>/<name>         how a session, a DAG or a question stands
//	round/<CLR id>/<n>           what was asked and answered in one round
//	escalation/<CLR id>/<n>      what people are asked to decide, who are mentioned in it
//	issue/<kind>/<name>          the body of an issue that was made for an object
//	reply/<id>                   what is said to the author of a comment
//	plan/<number>                what a pull request would do ([Pull])
//
// The comment ends with a marker that nobody sees and nobody else can make: its key, and a MAC of key and text
// ([Keys]). So a comment is known again when its id was lost, and one that somebody edited is not ours any more.
//
// What agents say is untrusted. It is quoted, and shown as text: it mentions nobody, refers to no issue, links nowhere,
// holds no HTML, and ends no comment early. Only emphasis, lists and code keep their form.
package mirror
