import ArgumentParser
import BackgroundTransfers
import CommandLineText
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import TransferDaemon
import URLLoading

/// `sluice transferd`: the daemon of background sessions.
struct TransferDaemonCommand: ParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: "no transfer was left, or another daemon runs",
        .usage: nil,
        .systemError: "system error, like a full disk or a missing library",
    ])
    static let configuration = CommandConfiguration(
        commandName: "transferd",
        abstract: "Run the daemon that carries out background transfers while their programs do not run.",
        discussion: """
            One daemon serves a user. Programs whose URLSession has a background configuration start it, or systemd does with \
            the units in deploy. It ends when no program is connected and no transfer is left.

            Its socket is in $XDG_RUNTIME_DIR/sluice, its journal and files in $XDG_STATE_HOME/sluice (~/.local/state/sluice). \
            It can be killed at any time: the next one continues. Needs the package libsqlite3-0.

            ENVIRONMENT, for tests
              SLUICE_TRANSFERD_CONDITIONS
                  Instead of the machine's: metered, battery, busy, or good.
              SLUICE_TRANSFERD_BACKGROUND_DELAY
                  Delay in seconds of the first transfer created by a program
                  that the daemon started. (default: 15)
              SLUICE_TRANSFERD_IDLE_TIME
                  Seconds until the daemon exits without transfers. (default: 10)

            EXAMPLES
              sluice transferd
              systemctl --user enable --now sluice-transferd.socket

            \(Self.exitCodes)
            """)

    func run() throws {
        signal(SIGHUP, SIG_IGN)
        var settings = DaemonSettings()
        let environment = ProcessInfo.processInfo.environment
        settings.conditions = { ConditionSources.read() }
        settings.launch = { ProgramLauncher.start($0, for: $1) }
        settings.log = { Self.log($0) }
        settings.permission = { texts in
            let rules = TargetRules(texts: texts)
            return { rules.allows($0.socketAddress, onBehalfOf: $1) }
        }
        if let delay = environment["SLUICE_TRANSFERD_BACKGROUND_DELAY"].flatMap({ Double($0) }), delay >= 0 {
            settings.backgroundDelay = min(delay, TransferRules.longestBackgroundDelay)
        }
        if let time = environment["SLUICE_TRANSFERD_IDLE_TIME"].flatMap({ Double($0) }), time >= 0, time < 86_400 {
            settings.idleLimit = .seconds(time)
        }
        do throws(DaemonProcess.Failure) {
            let outcome = try DaemonProcess.run(.current, settings) {
                Self.log("serving \(TransferFolders.current.socket)")
                try? ServiceSupervisor.notify("READY=1")
            }
            Self.log(outcome == .ended ? "no transfer is left" : "another daemon runs")
        } catch {
            ErrorReporter.print("sluice: \(error)")
            throw ExitStatus.systemError.code
        }
    }

    private static func log(_ text: String) {
        let line =
            "\(Date().formatted(.iso8601)) transferd[\(getpid())]: \(TerminalText.singleLine(text, limit: 1000))\n"
        _ = StandardError.write(Array(line.utf8))
    }
}
