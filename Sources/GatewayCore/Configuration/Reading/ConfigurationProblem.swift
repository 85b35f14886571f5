/// One thing wrong in a configuration, with all that is needed to put it right.
package struct ConfigurationProblem: Error, Sendable, Hashable {
    package let origin: ConfigurationOrigin
    package let keyPath: ConfigurationKeyPath
    /// To be read after "expected".
    package let expected: String
    /// To be read after "found"; text of the configuration is quoted, shortened and without control characters.
    package let found: String
    /// What to do, without a full stop; empty where `expected` says it all.
    package let remedy: String

    package init(
        origin: ConfigurationOrigin, keyPath: ConfigurationKeyPath, expected: String, found: String, remedy: String = ""
    ) {
        self.origin = origin
        self.keyPath = keyPath
        self.expected = expected
        self.found = found
        self.remedy = remedy
    }
}

extension ConfigurationProblem: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: KEY PATH: expected …, found …; REMEDY` in one line. On the command line the option's name
    /// stands for place and key path.
    package var description: String {
        var text = "\(self.origin): "
        if case .option = self.origin {} else if !self.keyPath.steps.isEmpty { text += "\(self.keyPath): " }
        text += "expected \(self.expected), found \(self.found)"
        return self.remedy.isEmpty ? text : text + "; \(self.remedy)"
    }
}
