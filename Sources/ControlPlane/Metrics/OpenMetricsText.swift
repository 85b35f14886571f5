import SessionTasks

/// Writes the OpenMetrics text format (OpenMetrics 1.0).
package struct OpenMetricsText {
    package enum Kind: String {
        case counter, gauge, histogram
    }

    package private(set) var text = ""

    package init() {}

    /// Begins a family; its samples follow.
    package mutating func family(_ name: String, _ kind: Kind, unit: String? = nil, _ help: String) {
        self.text += "# TYPE \(name) \(kind.rawValue)\n"
        if let unit { self.text += "# UNIT \(name) \(unit)\n" }
        self.text += "# HELP \(name) \(Self.escaped(help))\n"
    }

    package mutating func sample(_ name: String, _ labels: [(String, String)] = [], _ value: String) {
        self.text += name
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
            self.text += "{\(pairs.joined(separator: ","))}"
        }
        self.text += " \(value)\n"
    }

    package mutating func sample(_ name: String, _ labels: [(String, String)] = [], _ value: some BinaryInteger) {
        self.sample(name, labels, "\(value)")
    }

    /// A whole histogram.
    /// - Parameters:
    ///   - exponents: buckets, as powers of two of what was counted.
    ///   - divisor: what was counted for one unit of the family: 1 000 000 where microseconds are shown as seconds.
    package mutating func histogram(
        _ name: String, _ distribution: Distribution, exponents: some Sequence<Int>, divisor: Double = 1
    ) {
        for exponent in exponents {
            let bound = Double(UInt64(1) << UInt64(min(62, max(0, exponent)))) / divisor
            self.sample("\(name)_bucket", [("le", "\(bound)")], distribution.count(upTo: exponent))
        }
        self.sample("\(name)_bucket", [("le", "+Inf")], distribution.count)
        self.sample("\(name)_count", [], distribution.count)
        self.sample("\(name)_sum", [], "\(Double(distribution.sum) / divisor)")
    }

    /// Everything is said.
    package mutating func end() {
        self.text += "# EOF\n"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
