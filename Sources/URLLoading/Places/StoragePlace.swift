import Foundation

/// Where the stores of this program have their files, by the rules of the XDG directories.
enum StoragePlace {
    /// `XDG_DATA_HOME`, or else `~/.local/share`, and below it the folder where Foundation on Linux keeps its cookies:
    /// it has the name of the bundle without what follows its first dot.
    static var cookies: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.bundle) }

    /// The same, with a folder that has the name of the program.
    static var credentials: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.program) }

    /// `XDG_CACHE_HOME`, or else `~/.cache`, and below it a folder that has the name of the program.
    static var caches: URL { self.folder("XDG_CACHE_HOME", else: ".cache", name: self.program) }

    private static func folder(_ variable: String, else standard: String, name: String) -> URL {
        let named = ProcessInfo.processInfo.environment[variable]
        // A path that is not absolute is to be ignored, says the rule.
        let root = named.flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0, isDirectory: true) : nil }
        let home = URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
        return (root ?? home.appendingPathComponent(standard)).appendingPathComponent(name)
    }

    private static var bundle: String {
        let last = Bundle.main.bundlePath.split(separator: "/").last ?? ""
        let name = last.prefix { $0 != "." }
        return name.isEmpty ? self.program : String(name)
    }

    private static var program: String {
        let name = ProcessInfo.processInfo.processName.split(separator: "/").last ?? ""
        return name.isEmpty || name == "." || name == ".." ? "program" : String(name)
    }
}
