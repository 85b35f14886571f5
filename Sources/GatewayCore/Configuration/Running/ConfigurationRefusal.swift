/// Why a change of the configuration was not carried out. Everything is as it was.
package enum ConfigurationRefusal: Error, Sendable {
    /// - Parameter entry: where the entry that was written stands in the whole; `nil` where none was.
    case problems(ConfigurationProblems, entry: ConfigurationKeyPath?)
    case unknown(ConfigurationSection, String)
    case taken(ConfigurationSection, String)
    /// It would not run: a certificate that cannot be used, an address that is taken.
    case cannotRun(PlanFault)
    /// Somebody changed it in between.
    case changedMeanwhile
    /// There is no file that could be read again.
    case noFile
    /// The file cannot be read.
    case unreadable(String)
}

extension ConfigurationRefusal: CustomStringConvertible {
    package var description: String {
        switch self {
        case .problems(let problems, _): problems.description
        case .unknown(let section, let name): "there is no \(section.word) \(QuotedText.quoted(name))"
        case .taken(let section, let name): "there is a \(section.word) \(QuotedText.quoted(name)) already"
        case .cannotRun(let fault): fault.description
        case .changedMeanwhile: "the configuration was changed meanwhile"
        case .noFile: "there is no file"
        case .unreadable(let text): text
        }
    }
}
