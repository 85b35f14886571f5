/// `sluice bridge`, as it was typed. Becomes the same document as a configuration file, so that every option has the
/// same syntax, range and checks in both places, and a problem names the option.
package struct BridgeRequest: Sendable, Equatable {
    /// An option's name without dashes and its text; `nil` for one that is only there. In the order they were typed.
    package struct Option: Sendable, Equatable {
        package let name: BridgeOption
        package let text: String?

        package init(_ name: BridgeOption, _ text: String? = nil) {
            self.name = name
            self.text = text
        }
    }

    package var listen: String
    package var target: String
    package var options: [Option]

    package init(listen: String, target: String, options: [Option] = []) {
        self.listen = listen
        self.target = target
        self.options = options
    }

    /// Reads and checks it like a file, and what only a command line can get wrong.
    package func read() throws(ConfigurationProblems) -> LocatedConfiguration {
        let (problems, mended) = BridgeAudit(self).findings()
        guard !problems.isEmpty else { return try ConfigurationReader.read(BridgeDocument(self).document()) }
        do throws(ConfigurationProblems) {
            _ = try ConfigurationReader.read(BridgeDocument(mended).document())
        } catch {
            throw ConfigurationProblems(problems + error.all)
        }
        throw ConfigurationProblems(problems)
    }
}
