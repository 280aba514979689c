package graph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
)

// fonts are the fonts of the classes of text.
var fonts = map[string]font{
	"heading": {16, true}, "counts": {12, false}, "name": nameFont, "type": typeFont, "badge-text": badgeFont, "": typeFont,
	"message": edgeFont, "reply": edgeFont, "note": noteFont, "load": noteFont,
}

// piece is a text of a picture, or one of its bars.
type piece struct {
	what string
	rect
}

// textFlaws parses a picture and lists the texts and bars that overlap or leave the picture.
func textFlaws(picture []byte) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	var page rect
	var pieces []piece
	dec := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attr := make(map[string]string)
		for _, a := range e.Attr {
			attr[a.Name.Local] = a.Value
		}
		number := func(name string) int {
			n, _ := strconv.Atoi(attr[name])
			return n
		}
		at := rect{number("x"), number("y"), number("width"), number("height")}
		switch {
		case e.Name.Local == "rect" && attr["class"] == "page":
			page = at
		case e.Name.Local == "rect" && attr["class"] == "gauge":
			pieces = append(pieces, piece{"bar", at})
		case e.Name.Local == "text":
			class, _, _ := strings.Cut(attr["class"], " ")
			f, known := fonts[class]
			f.bold = f.bold || strings.HasSuffix(attr["class"], "strained")
			if !known {
				report("text of class %q", class)
			}
			text := content(dec)
			w := f.width(text)
			if attr["text-anchor"] == "middle" {
				at.x -= w / 2
			}
			// From the top of capitals to the base: what hangs below may touch.
			pieces = append(pieces, piece{"text " + text, rect{at.x, at.y - f.size*3/4, w, f.size * 3 / 4}})
		}
	}
	for i, a := range pieces {
		if a.w > 0 && (a.x < page.x || a.y < page.y || a.x+a.w > page.x+page.w || a.y+a.h > page.y+page.h) {
			report("%s %v leaves the picture %v", a.what, a.rect, page)
		}
		for _, b := range pieces[:i] {
			if a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h {
				report("%s %v and %s %v overlap", a.what, a.rect, b.what, b.rect)
			}
		}
	}
	return found
}

// content is the text of an element up to its end.
func content(dec *xml.Decoder) string {
	var text strings.Builder
	for depth := 1; depth > 0; {
		token, err := dec.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			text.WriteByte(' ')
		case xml.EndElement:
			depth--
		case xml.CharData:
			text.Write(token)
		}
	}
	return text.String()
}
