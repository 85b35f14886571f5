/// What is logged and in which form.
package struct LogSettings: Sendable, Equatable {
    /// The form of a line.
    package enum Format: String, Sendable, Equatable, CaseIterable {
        /// `time level message key=value …`
        case text
        /// One JSON object a line.
        case json
    }

    /// The least severe entry that is written; the names are those of swift-log.
    package enum Level: String, Sendable, Equatable, CaseIterable {
        case trace, debug, info, notice, warning, error, critical
    }

    package var format = Format.text
    package var level = Level.info

    package init() {}
}
