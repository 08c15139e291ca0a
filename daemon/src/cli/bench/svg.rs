//! A figure of one or more panels above a common x axis. Text and title are part of it, colours are
//! told apart by shape too.

use std::fmt::Write as _;

/// A line of a panel.
#[derive(Debug, Clone)]
pub(super) struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

impl Series {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), points: Vec::new() }
    }

    pub(super) fn push(&mut self, x: f64, y: f64) {
        self.points.push((x, y));
    }
}

/// The x axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    label: &'static str,
    logarithmic: bool,
}

impl Axis {
    pub(super) const fn linear(label: &'static str) -> Self {
        Self { label, logarithmic: false }
    }

    pub(super) const fn logarithmic(label: &'static str) -> Self {
        Self { label, logarithmic: true }
    }

    fn place(self, x: f64) -> f64 {
        if self.logarithmic { x.max(1.0).log10() } else { x }
    }
}

/// A y axis from zero with its lines.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub(super) label: &'static str,
    pub(super) series: Vec<Series>,
}

/// The whole figure.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) x: Axis,
    pub(super) panels: Vec<Panel>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 54.0;
const PANEL: f64 = 200.0;
const GAP: f64 = 46.0;
const COLOURS: [&str; 4] = ["#1f5fa8", "#b3541e", "#2e7d4f", "#7a3e9d"];
const DASHES: [&str; 4] = ["none", "7 4", "2 3", "9 3 2 3"];

impl Figure {
    /// The figure as a document.
    pub(super) fn draw(&self) -> String {
        let names = self.panels.iter().map(|panel| panel.series.len()).max().unwrap_or(0);
        let legend = 20.0 * names as f64;
        let panels = self.panels.len() as f64;
        let height = TOP + panels * PANEL + (panels - 1.0) * GAP + 56.0 + legend;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             aria-labelledby=\"title description\" font-family=\"sans-serif\" font-size=\"12\" \
             fill=\"#222\">\n<title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>\n\
             <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"#fff\"/>\n",
            escaped(&self.title),
            escaped(&self.description),
        );
        text(&mut svg, LEFT, 22.0, "start", &self.title, " font-size=\"15\" font-weight=\"bold\"");
        let (x_ticks, x_range) = self.x_ticks();
        let across = |x: f64| {
            let (first, last) = x_range;
            LEFT + (WIDTH - LEFT - RIGHT) * (self.x.place(x) - first) / (last - first)
        };
        for (index, panel) in self.panels.iter().enumerate() {
            let top = TOP + index as f64 * (PANEL + GAP);
            panel.draw(&mut svg, top, &across, &x_ticks);
        }
        let bottom = TOP + panels * PANEL + (panels - 1.0) * GAP;
        text(
            &mut svg,
            f64::midpoint(LEFT, WIDTH - RIGHT),
            bottom + 36.0,
            "middle",
            self.x.label,
            "",
        );
        for (index, series) in self.panels.first().into_iter().flat_map(|p| &p.series).enumerate() {
            let y = bottom + 56.0 + 20.0 * index as f64;
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{}\" \
                 stroke-width=\"2\" stroke-dasharray=\"{}\"/>",
                y - 4.0,
                LEFT + 34.0,
                y - 4.0,
                COLOURS[index % COLOURS.len()],
                DASHES[index % DASHES.len()],
            );
            text(&mut svg, LEFT + 42.0, y, "start", &series.name, "");
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Where the x axis is marked, and from where to where it goes.
    fn x_ticks(&self) -> (Vec<f64>, (f64, f64)) {
        let all = self.panels.iter().flat_map(|panel| &panel.series).flat_map(|s| &s.points);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (x, _) in all {
            low = low.min(*x);
            high = high.max(*x);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        if self.x.logarithmic {
            let (first, last) = (low.max(1.0).log10().floor(), high.max(1.0).log10().ceil());
            let last = if last > first { last } else { first + 1.0 };
            let mut ticks = Vec::new();
            let mut tick = 1.0;
            while tick <= high.max(10.0) * 10.0 {
                let place = f64::log10(tick).round();
                if place >= first && place <= last {
                    ticks.push(tick);
                }
                tick *= 10.0;
            }
            return (ticks, (first, last));
        }
        let step = step((high - low).max(1.0));
        let (first, last) = ((low / step).floor() * step, (high / step).ceil() * step);
        let last = if last > first { last } else { first + step };
        (marks(first, last, step), (first, last))
    }
}

impl Panel {
    fn draw(&self, svg: &mut String, top: f64, across: &impl Fn(f64) -> f64, x_ticks: &[f64]) {
        let most = self.series.iter().flat_map(|s| &s.points).map(|(_, y)| *y).fold(0.0, f64::max);
        let step = step(if most > 0.0 { most } else { 1.0 });
        let most = (most / step).ceil().max(1.0) * step;
        let bottom = top + PANEL;
        let up = |y: f64| bottom - PANEL * y / most;
        text(svg, LEFT, top - 8.0, "start", self.label, "");
        for y in marks(0.0, most, step) {
            let at = up(y);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
                WIDTH - RIGHT
            );
            text(svg, LEFT - 8.0, at + 4.0, "end", &short(y), "");
        }
        for &x in x_ticks {
            let at = across(x);
            let _ = writeln!(
                svg,
                "<line x1=\"{at:.1}\" y1=\"{top:.1}\" x2=\"{at:.1}\" y2=\"{bottom:.1}\" stroke=\"#eee\"/>"
            );
            text(svg, at, bottom + 16.0, "middle", &short(x), "");
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {top:.1}V{bottom:.1}H{:.1}\" fill=\"none\" stroke=\"#222\"/>",
            WIDTH - RIGHT
        );
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let points: Vec<String> = series
                .points
                .iter()
                .map(|&(x, y)| format!("{:.1},{:.1}", across(x), up(y)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-dasharray=\"{}\"/>",
                points.join(" "),
                DASHES[index % DASHES.len()],
            );
            for &(x, y) in &series.points {
                let _ = writeln!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"><title>{}: {} at \
                     {}</title></circle>",
                    across(x),
                    up(y),
                    escaped(&series.name),
                    short(y),
                    short(x),
                );
            }
        }
    }
}

/// One, two or five times a power of ten, so that there are about five marks.
fn step(range: f64) -> f64 {
    let mut step = 1.0;
    while step < range / 5.0 {
        step *= 10.0;
    }
    while step > range / 5.0 {
        step /= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * step)
        .find(|step| range / step <= 6.0)
        .unwrap_or(range)
}

fn marks(first: f64, last: f64, step: f64) -> Vec<f64> {
    let count = ((last - first) / step).round() as u32;
    (0..=count).map(|mark| first + f64::from(mark) * step).collect()
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str, more: &str) {
    let words = escaped(words);
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{words}</text>"
    );
}

/// A figure in few characters.
fn short(figure: f64) -> String {
    let (scaled, suffix) = match figure.abs() {
        size if size >= 1e9 => (figure / 1e9, " G"),
        size if size >= 1e6 => (figure / 1e6, " M"),
        size if size >= 1e3 => (figure / 1e3, " k"),
        _ => (figure, ""),
    };
    let text = format!("{scaled:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_title_description_axes_and_every_point_inside() {
        let mut series = Series::new("a < b");
        for (x, y) in [(1e5, 150_000.0), (3e5, 140_000.0), (1e6, 120_000.0)] {
            series.push(x, y);
        }
        let figure = Figure {
            title: String::from("Rate & memory"),
            description: String::from("What it shows."),
            x: Axis::logarithmic("moves"),
            panels: vec![Panel { label: "moves per second", series: vec![series] }],
        };
        let svg = figure.draw();
        for part in ["<title id=\"title\">Rate &amp; memory</title>", "<desc", ">100 k<", ">1 M<"] {
            assert!(svg.contains(part), "{part} is not in\n{svg}");
        }
        assert!(
            svg.contains("a &lt; b")
                && svg.contains(">moves<")
                && svg.contains(">moves per second<")
        );
        let circles: Vec<&str> = svg.lines().filter(|line| line.starts_with("<circle")).collect();
        assert_eq!(circles.len(), 3);
        for circle in circles {
            let number = |name: &str| -> f64 {
                let rest = circle.split(&format!("{name}=\"")).nth(1).unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            };
            assert!((LEFT..=WIDTH - RIGHT).contains(&number("cx")), "{circle}");
            assert!((TOP..=TOP + PANEL).contains(&number("cy")), "{circle}");
        }
    }

    #[test]
    fn marks_are_few_and_round() {
        assert_eq!((step(1.0), step(150_000.0), step(42.0)), (0.2, 50_000.0, 10.0));
        assert_eq!(marks(0.0, 0.6, 0.2).len(), 4);
        assert_eq!(["0", "0.2", "150 k", "1 M"], [0.0, 0.2, 150_000.0, 1e6].map(short)[..]);
    }

    #[test]
    fn nothing_to_draw_is_still_a_figure() {
        let figure = Figure {
            title: String::new(),
            description: String::new(),
            x: Axis::linear("x"),
            panels: vec![Panel { label: "y", series: vec![Series::new("none")] }],
        };
        assert!(figure.draw().ends_with("</svg>\n"));
    }
}
