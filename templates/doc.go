// Package templates holds what people edit afterwards: the projects that
// `topogen init` begins and the stubs that `topogen build --scaffold` writes.
//
//	files, err := templates.Project("pipeline", templates.Values{Name: "orders", …})
//	text, err := templates.Stubs(templates.StubFile{…})
//
// Each project is a folder whose files are templates with the delimiters {% and
// %}, which appear in neither Go nor workflow files. A file under project/all
// belongs to every project.
package templates
