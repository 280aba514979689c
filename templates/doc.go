// Package templates renders the files that users edit later: the projects of `topogen init`
// and the stubs of `topogen build --scaffold`.
//
//	files, err := templates.Project("pipeline", templates.Values{Name: "orders", …})
//	text, err := templates.Stubs(templates.StubFile{…})
//
// Each project is a folder of templates with the delimiters {% and %}, which appear in
// neither Go nor workflow files. Files under project/all belong to every project.
package templates
