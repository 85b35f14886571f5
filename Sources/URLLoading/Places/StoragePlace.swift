import Foundation

/// Where the stores of this program have their files, by the rules of the XDG directories.
enum StoragePlace {
    /// `XDG_DATA_HOME`, or else `~/.local/share`, and the program's own folder below.
    static var data: URL { self.folder("XDG_DATA_HOME", else: ".local/share") }

    /// `XDG_CACHE_HOME`, or else `~/.cache`, and the program's own folder below.
    static var caches: URL { self.folder("XDG_CACHE_HOME", else: ".cache") }

    private static func folder(_ variable: String, else standard: String) -> URL {
        let named = ProcessInfo.processInfo.environment[variable]
        // A path that is not absolute is to be ignored, says the rule.
        let root = named.flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0, isDirectory: true) : nil }
        let home = URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
        return (root ?? home.appendingPathComponent(standard)).appendingPathComponent(self.program)
    }

    /// The program's name without what follows its first dot.
    private static var program: String {
        let last = Bundle.main.bundlePath.split(separator: "/").last ?? "program"
        let name = last.prefix { $0 != "." }
        return name.isEmpty ? "program" : String(name)
    }
}
