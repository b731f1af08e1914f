// Package eval measures whether search finds what is meant, on any Go program: the first sentence of what a function's
// documentation says, taken out of the text that is indexed, must find the function among all others. The index and the
// search are those of the program, not likenesses.
//
// # What is asked
//
// Functions and methods with exported names are asked for, by the first sentence of their doc comment without their own
// name, which most sentences begin with. A sentence that has fewer than three terms then, or that documents several
// functions word for word, asks for no function in particular, and is left out. The first sentence of every function is
// taken out of the source before it is indexed, so that no answer can be read off.
//
// # What is measured
//
// MRR@10 is the mean of one over the rank of the right answer, recall@10 the share of questions that have it among the
// first ten functions and methods that are found.
package eval
