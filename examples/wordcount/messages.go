package main

// Chunk is a piece of a file. It begins and ends between words, unless a word is longer
// than a chunk.
type Chunk struct {
	Number int // 0, 1, 2 …; distributes the chunks over the splitters
	Text   string
}

// Word is one word in lower case. Its text is a part of a chunk's text, so sending a word
// copies no text and allocates nothing.
type Word struct{ Text string }

// Count says how often a word occurred.
type Count struct {
	Word  string
	Times int
}

// Total is the number of words that one counter received.
type Total struct{ Words, Different int }
