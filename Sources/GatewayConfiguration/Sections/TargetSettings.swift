/// Targets of a route by name, in a file.
package struct TargetSettings: Sendable, Equatable {
    /// A file, or a directory of files.
    package var file: String
    /// The parameter of the route's path, or else of the query, whose value names the target.
    package var parameter = "token"

    package init(file: String) {
        self.file = file
    }
}

/// Keys of the mapping `targets`.
package typealias TargetsKey = SettingsKeyName<TargetSettings>

extension TargetsKey {
    package static var file: Self { "file" }
}

extension TargetSettings: SettingsSection {
    static let sectionName = "Targets"
    static let initial = TargetSettings(file: "")
    static let keys: [SettingsKey<TargetSettings>] = [
        .required(
            .file, \.file, .path,
            """
            File of targets, or directory of such files, of at most 1 MiB and 10 000 targets together. It is read again within a \
            second after it changed; a version with a mistake is reported in the log, and the one before stays in use.
            """),
        .value(
            "parameter", \.parameter, .token, example: "machine",
            """
            Name of the parameter that names the target: of the route's path, where it has `{NAME}`, or else of the query.
            """),
    ]
}
