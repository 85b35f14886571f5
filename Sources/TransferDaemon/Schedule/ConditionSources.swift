import Foundation
import StreamTransport

/// Sources of the machine's conditions.
package enum ConditionSources {
    /// Environment variable that replaces the sources: words of `metered`, `battery` and `busy`, separated by commas; `good`
    /// or nothing for a machine without these conditions.
    package static let variable = "SLUICE_TRANSFERD_CONDITIONS"

    /// Reads all sources. Waits for NetworkManager, up to `MeteredMonitor.firstAnswerTimeout`.
    package static func read(environment: [String: String] = ProcessInfo.processInfo.environment) -> MachineConditions {
        if let words = environment[self.variable] { return self.conditions(named: words) }
        return MachineConditions(
            isMetered: MeteredMonitor.isMachineMetered(), isOnBattery: self.isOnBattery(at: "/sys/class/power_supply"),
            load: self.load(at: "/proc/loadavg", processors: ProcessInfo.processInfo.activeProcessorCount))
    }

    package static func conditions(named words: String) -> MachineConditions {
        let names = Set(words.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
        return MachineConditions(
            isMetered: names.contains("metered"), isOnBattery: names.contains("battery"),
            load: names.contains("busy") ? MachineConditions.loadLimit : 0)
    }

    /// Whether a battery discharges and no other supply is online (the kernel's sysfs-class-power).
    package static func isOnBattery(at folder: String) -> Bool {
        func text(_ supply: String, _ name: String) -> String {
            let text = (try? String(contentsOfFile: "\(folder)/\(supply)/\(name)", encoding: .utf8)) ?? ""
            return text.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let supplies = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let hasMains = supplies.contains { text($0, "type") != "Battery" && text($0, "online") == "1" }
        let discharges = supplies.contains { supply in
            // Batteries of mice and keyboards have the scope Device.
            text(supply, "type") == "Battery" && text(supply, "scope") != "Device"
                && text(supply, "status") == "Discharging"
        }
        return discharges && !hasMains
    }

    /// The load of the last minute per processor (proc_loadavg(5)); 0 if unknown.
    package static func load(at path: String, processors: Int) -> Double {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let load = text.split(separator: " ").first.flatMap { Double($0) } ?? 0
        return load / Double(max(1, processors))
    }
}
