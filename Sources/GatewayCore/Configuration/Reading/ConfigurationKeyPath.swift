/// The way from the top of a configuration to one value: `listeners[0].tls.certificate`.
package struct ConfigurationKeyPath: Sendable, Hashable {
    package enum Step: Sendable, Hashable {
        case key(String)
        case index(Int)
    }

    package let steps: [Step]

    package static let root = ConfigurationKeyPath(steps: [])

    package func key(_ name: String) -> ConfigurationKeyPath {
        ConfigurationKeyPath(steps: self.steps + [.key(name)])
    }

    package func key(_ key: some RawRepresentable<String>) -> ConfigurationKeyPath {
        self.key(key.rawValue)
    }

    package func index(_ index: Int) -> ConfigurationKeyPath {
        ConfigurationKeyPath(steps: self.steps + [.index(index)])
    }

    /// Itself, what it lies in, and so on up to the top.
    var selfAndAncestors: [ConfigurationKeyPath] {
        (0...self.steps.count).reversed().map { ConfigurationKeyPath(steps: Array(self.steps.prefix($0))) }
    }
}

extension ConfigurationKeyPath: CustomStringConvertible {
    package var description: String {
        self.steps.reduce(into: "") { text, step in
            switch step {
            case .key(let name): text += text.isEmpty ? name : ".\(name)"
            case .index(let index): text += "[\(index)]"
            }
        }
    }
}
