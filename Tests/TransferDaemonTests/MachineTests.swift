import BackgroundTransfers
import Foundation
import Testing
import TransferDaemon

@Suite("Conditions of the machine, and folders")
struct MachineTests {
    private static func folder(_ files: [String: String]) throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(path: "MachineTests-\(UUID())")
        for (path, text) in files {
            let file = folder.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("\(text)\n".utf8).write(to: file)
        }
        return folder
    }

    private static let battery = ["BAT0/type": "Battery", "BAT0/status": "Discharging"]
    private static let mouse = [
        "hid/type": "Battery", "hid/status": "Discharging", "hid/scope": "Device",
    ]

    @Test(arguments: [
        (battery, true), (battery.merging(["AC/type": "Mains", "AC/online": "0"]) { $1 }, true),
        (battery.merging(["AC/type": "Mains", "AC/online": "1"]) { $1 }, false),
        (battery.merging(["BAT0/status": "Charging"]) { $1 }, false), (mouse, false),
    ])
    func batteryIsUsedWithoutAnotherSupply(_ files: [String: String], _ isOnBattery: Bool) throws {
        let folder = try Self.folder(files)
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(ConditionSources.isOnBattery(at: folder.path) == isOnBattery)
        #expect(!ConditionSources.isOnBattery(at: folder.appending(path: "none").path))
    }

    @Test(arguments: [
        ([:], "/home/a/.local/state/sluice"), (["HOME": "/b"], "/b/.local/state/sluice"),
        (["HOME": "b"], "/home/a/.local/state/sluice"), (["HOME": "/b", "XDG_STATE_HOME": "/c"], "/c/sluice"),
    ])
    func foldersAreInTheHomeOfTheEnvironment(_ environment: [String: String], _ state: String) {
        #expect(TransferFolders(environment: environment, home: "/home/a").state == state)
    }

    @Test func loadIsThatOfTheLastMinutePerProcessor() throws {
        let folder = try Self.folder(["loadavg": "3.00 1.50 0.10 2/300 999", "other": "nonsense"])
        defer { try? FileManager.default.removeItem(at: folder) }
        #expect(ConditionSources.load(at: folder.appending(path: "loadavg").path, processors: 2) == 1.5)
        #expect(ConditionSources.load(at: folder.appending(path: "other").path, processors: 2) == 0)
        #expect(ConditionSources.load(at: folder.appending(path: "none").path, processors: 0) == 0)
    }

    @Test func foldersFollowTheEnvironment() {
        let named = TransferFolders(
            environment: ["XDG_RUNTIME_DIR": "/run/user/1", "XDG_STATE_HOME": "/state"], home: "/home/ada")
        #expect(
            named.socket == "/run/user/1/sluice/transferd.socket" && named.journal == "/state/sluice/transfers.sqlite")
        let standard = TransferFolders(
            environment: ["XDG_RUNTIME_DIR": "run", "XDG_STATE_HOME": ""], home: "/home/ada")
        #expect(standard.state == "/home/ada/.local/state/sluice" && standard.runtime == "\(standard.state)/run")
    }

    @Test(arguments: [
        ("org.example.app-1", "org_2eexample_2eapp-1"), ("../..", "_2e_2e_2f_2e_2e"), ("a_b", "a_5fb"), ("ü", "_c3_bc"),
        ("\n", "_0a"),
    ])
    func folderOfASessionIsMadeOfItsBytes(_ identifier: String, _ name: String) {
        #expect(TransferFolders.name(of: identifier) == name)
    }

    @Test func folderThatOthersCanEnterIsClosed() throws {
        let folder = try Self.folder(["a": "b"])
        defer { try? FileManager.default.removeItem(at: folder) }
        chmod(folder.path, 0o755)
        #expect(TransferFolders.create(folder.path) == nil)
        var status = stat()
        #expect(stat(folder.path, &status) == 0 && status.st_mode & 0o777 == 0o700)
        #expect(TransferFolders.create(folder.appending(path: "a").path) == "is not a folder")
    }
}
