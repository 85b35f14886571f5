/// Where somebody wrote a value.
package enum ConfigurationOrigin: Sendable, Hashable {
    /// In a file; line and column count from 1, columns in Unicode scalars.
    case file(String, line: Int, column: Int)
    /// In a file as a whole.
    case wholeFile(String)
    /// On the command line: `--ping-interval`, `LISTEN`.
    case option(String)
}

extension ConfigurationOrigin: CustomStringConvertible {
    package var description: String {
        switch self {
        case .file(let name, let line, let column): "\(name):\(line):\(column)"
        case .wholeFile(let name): name
        case .option(let name): name
        }
    }
}
