package main

// Chunk is a piece of a file. It begins and ends between words, unless one is longer
// than a chunk.
type Chunk struct {
	Number int // 0, 1, 2 …; spreads the chunks over the splitters
	Text   string
}

// Word is one word, in small letters. Its text is a part of a chunk's, so sending
// a word copies no text and allocates nothing.
type Word struct{ Text string }

// Count says how often a word was seen.
type Count struct {
	Word  string
	Times int
}

// Total is all that one counter has seen.
type Total struct{ Words, Different int }
