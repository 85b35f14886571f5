/// A directory of static files.
package struct FileSettings: Sendable, Equatable {
    package var directory: String
    /// Value of the field `Cache-Control`.
    package var cacheControl = "no-cache"
    /// Whether directories without an index file are listed.
    package var lists = false
    /// Further fields of responses.
    package var headers: [ExtraHeader] = []

    package init(directory: String) {
        self.directory = directory
    }
}

/// Keys of the mapping `files`.
package typealias FilesKey = SettingsKeyName<FileSettings>

extension FilesKey {
    package static var directory: Self { "directory" }
    fileprivate static var headers: Self { "headers" }
}

extension FileSettings: SettingsSection {
    static let sectionName = "Files"
    static let initial = FileSettings(directory: "")
    static let keys: [SettingsKey<FileSettings>] = [
        .required(
            .directory, \.directory, .directory,
            "Directory of the files. A relative path begins at the working directory."),
        .value(
            "cache-control", \.cacheControl, .fieldValue, example: "\"public, max-age=3600\"",
            """
            Value of the field `Cache-Control` of files. By default browsers and caches keep files, and ask each time \
            whether they changed.
            """),
        .custom(
            .headers, ExtraHeader.form, example: "{Content-Security-Policy: \"default-src 'self'\"}",
            """
            Fields added to responses with files and listings, to 304, 412 and redirects, not to other errors. Values have at most \
            4096 bytes. Fields that the gateway writes itself, like `ETag`, and those that concern the connection are refused.
            """
        ) { section, settings in settings.headers = section.headers(.headers, for: .file) },
        .value(
            "listing", \.lists, .boolean,
            "Whether a directory without index.html is answered with the list of its files, and not with 404."),
    ]
}
