// Package eval measures the quality of search on any Go program: the first sentence of a function's documentation,
// removed from the indexed text, must find the function among all others. It uses the index and the search of the
// program itself.
//
// # What is asked
//
// The queries are the first sentences of the doc comments of functions and methods with exported names, without their
// own name, which begins most sentences. A sentence with fewer than three remaining terms, or with the same text for
// several functions, identifies no function, and is left out. The first sentence of every function is removed from the
// source before indexing.
//
// # What is measured
//
// MRR@10 is the mean of one over the rank of the right answer, recall@10 the share of queries with the right answer
// among the first ten functions and methods of the result.
package eval
