package memory

// tone has the words that modify a sentence: openers are words at its beginning without meaning; plans begin
// intentions; doubts mark possibilities; unless are words shortly before a phrase that make it not a statement; not
// negates it; undecided make it not a decision, conditional at the beginning a possibility.
type tone struct{ openers, plans, doubts, unless, not, undecided, conditional phrases }

func newTone() tone {
	return tone{
		openers: phrasesOf("ok|okay|so|then|also|and|but|actually|finally|great|perfect|good|well|right|excellent|" +
			"yes|sure|done|alright|please|however|therefore|thus|instead|additionally|furthermore|meanwhile|" +
			"overall|now|good news"),
		plans: phrasesOf("i'll|i will|let me|let's|i'm going to|i am going to|i need to|i want to|i should|i can|" +
			"i could|i have to|i must|i plan|i'd|i would|i'm about to|we'll need|we need to|we should|we could|" +
			"we can|we might|we may|we'd|you can|you could|you should|you may|you might|you need to|you'll|" +
			"would you|do you|shall|should|could|if you|feel free|looking at|checking|reading|running|searching|" +
			"trying|next|to do|todo|first i|first let|going to|about to|i'm now|now i|now let|time to|here is|" +
			"here's|here are|want me|the user|you asked|you want"),
		doubts: phrasesOf("let me|i'll|i will|i'm going to|we could|could be|could also|might be|may be|" +
			"could have|might have|should have|not sure|unclear|i think|i believe|i suspect|i guess|i wonder|" +
			"it seems|seems to|seems like|looks like|appears to|probably|possibly|perhaps|maybe|presumably|" +
			"if you want|if you'd like|if you prefer|if you like|if needed|to be decided|tbd|would be|would have|" +
			"would need|hypothetically|for instance|or we could|one option|another option|an option|alternatively|" +
			"let's see|wait|hmm|undecided|assuming"),
		unless: phrasesOf("whether|if|could|might|should|would|can|may|unless|until|before|once|haven't|hasn't|" +
			"never|please|maybe|perhaps|were|cannot|can't|when|yet|how|why|need|needs|must"),
		not: phrasesOf("no|not|never|without|zero|0|any|none|n't|isn't|wasn't|doesn't|didn't|don't|won't|aren't|" +
			"weren't|cannot|can't|hasn't|haven't|avoid|avoids|prevent|prevents|against"),
		undecided:   phrasesOf("undecided|tbd|to be decided|not decided|or we could|not sure|either way"),
		conditional: phrasesOf("if|when|whenever|unless|once|in case|should"),
	}
}

// choices has the words of decisions: decided alone is enough; usage needs a subject, and weighed needs a
// rejected option, which a contrast introduces. A reason makes any sentence worth more.
type choices struct{ decided, weighed, contrast, reason, subject, usage phrases }

func newChoices() choices {
	return choices{
		decided: phrasesOf("decided to|decided on|decided against|decided not|decided that|we decided|i decided|" +
			"decided for|was decided|were decided|have decided|decision is|decision was|chose|chosen|we choose|" +
			"i choose|opted for|opted to|opting for|opted against|settled on|went with|going with|go with|" +
			"goes with|we will use|we'll use|we will keep|we'll keep|we will not|we won't|ruled out|agreed to|" +
			"agreed on|agreed that|standardize on|standardise on|standardized on|standardised on|in favor of|" +
			"in favour of|we rejected|i rejected|but rejected|rejected it|rejected them|rejected the idea|" +
			"rejected the option|rejected the alternative|rejected the approach|committed to|sticking with|" +
			"stick with|stuck with|deliberately|on purpose|by design|trade off|tradeoff"),
		weighed:  phrasesOf("instead of|rather than|in place of|over the|not the|as opposed to|and not"),
		contrast: phrasesOf("instead of|rather than|in place of|as opposed to|over|not|but not|and not"),
		reason: phrasesOf("because|since|due to|so that|as it|as they|the reason|which avoids|which keeps|" +
			"to avoid|to keep|in order to|otherwise|therefore|thanks to|owing to|caused by|by"),
		subject: phrasesOf("we|i|we've|i've|they|team"),
		usage: phrasesOf("use|uses|used|using|keep|keeps|kept|keeping|switched|store|stores|stored|make|made|" +
			"picked|selected|prefer|preferred|moved|put|return|returns|returned|implemented|write|wrote|build|" +
			"built|went|take|took|pass|passed|run|ran|compute|computed|derive|derived|model|modelled|modeled|" +
			"replaced|dropped|avoided"),
	}
}

// breaks has the words of errors: broke alone is enough; wrong needs a reason, unless it is a word of nothingWrong; failing
// needs the output of a program.
type breaks struct{ broke, wrong, nothingWrong, failing phrases }

func newBreaks() breaks {
	return breaks{
		failing: phrasesOf("failed|fails|failing|crashed|crashes|raised|raises|threw|throws|aborted"),
		broke: phrasesOf("root cause|caused by|was caused|is caused|fails with|fail with|fail because|failed with|" +
			"failing with|fails because|failed because|failing because|failing since|panicked|panics|segfault|" +
			"segfaulted|segmentation fault|deadlock|deadlocked|deadlocks|race condition|data race|memory leak|" +
			"goroutine leak|stack overflow|regression|the bug was|the bug is|the problem was|the problem is|" +
			"the issue was|the issue is|the error was|the error is|the failure was|the failure is|the culprit|" +
			"fixed by|resolved by|solved by|worked around|workaround|crashed|crashes|crashing|timed out|hangs|" +
			"hung|nil pointer|null pointer|no such file|permission denied|connection refused|flaky|corrupted|" +
			"corrupts|off by one|the fix was|the fix is|infinite loop|out of memory|broke the|broke because|" +
			"got lost|was lost|were lost|silently ignored|silently dropped"),
		wrong: phrasesOf("error|errors|failed|fails|failing|failure|exception|bug|broken|wrong|wrongly|" +
			"incorrectly|incorrect|fixed|missing|typeerror|valueerror|keyerror|mismatch|conflict|rejected"),
		nothingWrong: phrasesOf("error handling|error message|error messages|error code|error codes|error type|" +
			"error types|an error|the error path|returns error|error wrapping|errors as|errors is|error value|" +
			"error text|error case|0 failed|0 errors|0 failures|failing test first|bug report|fixed size|" +
			"fixed set|fixed width|fixed number|fixed order|fixed point|missing values|conflict free"),
	}
}

// changes is what tells changes of files: changed, said actively or in the passive; added begins what brings something
// new.
type changes struct{ changed, added, passive phrases }

func newChanges() changes {
	return changes{
		changed: phrasesOf("created|added|modified|updated|renamed|deleted|removed|refactored|moved|replaced|" +
			"extracted|introduced|implemented|rewrote|rewritten|split|merged|migrated|converted|wrapped|inlined|" +
			"changed|dropped|bumped|registered|wired|exposed|reworked|simplified|extended|deprecated|restored|" +
			"reverted|adjusted|switched|fixed|documented|generated|ported|made|taught|turned|now uses|now returns|" +
			"now reads|now writes|now takes|now checks|now calls|now has|now accepts|now rejects|now validates|" +
			"now supports|now runs|now keeps|now holds|now emits"),
		added: phrasesOf("created|added|introduced|implemented|wrote|documented|generated|extended|registered|" +
			"wired|refactored|renamed"),
		passive: phrasesOf("was|were|is now|are now|has been|have been|got"),
	}
}

// facts has the words of facts: known alone is enough; placed and weakly need named things.
type facts struct{ known, placed, weakly phrases }

// wishes is what users state: byUser a decision, orders too if there is a contrast, ruled a fact; not idle.
type wishes struct{ byUser, orders, ruled, idle phrases }

func newWishes() wishes {
	return wishes{
		byUser: phrasesOf("go with|let's use|let's go|let's keep|we decided|we use|we don't|we do not|we never|" +
			"we always|we prefer|i prefer|i decided|stick with|stay with|don't use|do not use|never use|" +
			"always use|prefer|decision"),
		orders: phrasesOf("use|keep|put|make|store|take|go|run|write|name|call|leave|return|read|build|do"),
		ruled: phrasesOf("always|never|must|must not|remember|note that|keep in mind|our convention|" +
			"the convention|by convention|only works|requires|is required|is deprecated|don't|do not|no|important|" +
			"be aware"),
		idle: phrasesOf("don't forget|don't worry|don't bother|don't commit|don't push|don't start|don't stop|" +
			"don't know|do not know|no problem|no worries|no thanks|no need|no idea|no rush|no hurry|no that's|" +
			"no it's|don't think|don't see|don't understand|don't mind|don't care|never mind"),
	}
}
