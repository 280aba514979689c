package graph

// watchStyle is the additional style for topologies with settings for failures.
const watchStyle = `.topogen .letters .line{stroke-dasharray:7 4}
.topogen .process .box,.topogen .process .card{stroke-dasharray:9 3}
.topogen .badge.apart{fill:#e6defa}
.topogen .badge-text.apart{fill:#4b2c91}
.topogen .badge.group{fill:#dbe3f1}
.topogen .badge-text.group{fill:#26334d}
@media (prefers-color-scheme:dark){
.topogen .badge.apart{fill:#3b2d66}
.topogen .badge-text.apart{fill:#d3c3ff}
.topogen .badge.group{fill:#33415c}
.topogen .badge-text.group{fill:#dbe3f1}
}
`

// style is the style of pictures. All selectors begin with the picture's class, so that
// several pictures and other styles can share a page. It uses no CSS variables, because
// librsvg and Inkscape do not support them.
const style = `
.topogen{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.topogen .page{fill:#fff}
.topogen .heading{font-size:16px;font-weight:700;fill:#172033}
.topogen .counts{font-size:12px;fill:#5a6780}
.topogen .box,.topogen .card{fill:#f3f6fc;stroke:#6b7fa8;stroke-width:1.3}
.topogen .card{fill:#e3e9f6}
.topogen .external .box,.topogen .external .card{fill:#f0faf5;stroke:#2c8a62;stroke-dasharray:5 3}
.topogen .blocking .box,.topogen .blocking .card{fill:#fff8ec;stroke:#b97b1c}
.topogen .timer .box{fill:#fff;stroke:#8a94a8;stroke-width:1.1}
.topogen .timer text{font-size:12px;fill:#4a566e}
.topogen .clock{fill:none;stroke:#6b778f;stroke-width:1.3;stroke-linecap:round}
.topogen .name{font-size:14px;font-weight:700;fill:#172033}
.topogen .type{font-size:12px;fill:#5a6780}
.topogen .count{font-weight:700;fill:#2b5fd0}
.topogen .badge{fill:#d8efe3}
.topogen .badge-text{font-size:10px;font-weight:700;fill:#17603f}
.topogen .blocking .badge.wait{fill:#fbe3b5}
.topogen .badge-text.wait{fill:#7a4a00}
.topogen .under{fill:none;stroke:#fff;stroke-width:5}
.topogen .line{fill:none;stroke:#7787a6;stroke-width:1.5}
.topogen .head{fill:#7787a6}
.topogen .reply-head{fill:#fff;stroke:#7787a6;stroke-width:1.4}
.topogen .back .line{stroke:#9a63c7}
.topogen .back .head{fill:#9a63c7}
.topogen .back .reply-head{stroke:#9a63c7}
.topogen .message{font-size:12px;font-weight:500;fill:#26334d}
.topogen .reply{font-size:12px;fill:#26334d}
.topogen .note{font-size:11px;fill:#5f6c85}
.topogen .edge:hover .line{stroke-width:2.5}
@media (prefers-color-scheme:dark){
.topogen .page{fill:#0f141d}
.topogen .heading,.topogen .name{fill:#eef2fa}
.topogen .counts,.topogen .type{fill:#a3b0c8}
.topogen .box{fill:#1b2434;stroke:#6079ab}
.topogen .card{fill:#273349;stroke:#6079ab}
.topogen .external .box,.topogen .external .card{fill:#12271f;stroke:#3fa87c}
.topogen .blocking .box,.topogen .blocking .card{fill:#2b2314;stroke:#c08a35}
.topogen .timer .box{fill:#0f141d;stroke:#76839c}
.topogen .timer text{fill:#bcc7da}
.topogen .clock{stroke:#9aa7bf}
.topogen .count{fill:#86acff}
.topogen .badge{fill:#1d4a37}
.topogen .badge-text{fill:#a5e6c8}
.topogen .blocking .badge.wait{fill:#553d10}
.topogen .badge-text.wait{fill:#ffd993}
.topogen .under{stroke:#0f141d}
.topogen .line{stroke:#8394b5}
.topogen .head{fill:#8394b5}
.topogen .reply-head{fill:#0f141d;stroke:#8394b5}
.topogen .back .line{stroke:#b98be0}
.topogen .back .head{fill:#b98be0}
.topogen .back .reply-head{stroke:#b98be0}
.topogen .message,.topogen .reply{fill:#dbe3f1}
.topogen .note{fill:#9fabc2}
}
`
