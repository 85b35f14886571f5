/// Why a file named in a configuration cannot be used.
package enum FileFault: Sendable, Equatable {
    case missing
    case notPermitted
    /// A directory, device or pipe.
    case notAFile
    /// Anything else, as the system says it.
    case other(String)

    /// To be read after "found".
    var summary: String {
        switch self {
        case .missing: "no such file"
        case .notPermitted: "a file that may not be opened"
        case .notAFile: "something that is not a file"
        case .other(let text): text
        }
    }
}
