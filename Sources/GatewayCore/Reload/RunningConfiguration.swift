import GatewayConfiguration

/// The running configuration and its changes: the file read again, or single entries edited. Changes are serialized.
package actor RunningConfiguration {
    /// How the configuration is read again, completed and checked.
    package struct Settings: Sendable {
        /// Reads the file again; `nil` without a file.
        package var read: (@Sendable () throws -> LocatedConfiguration)?
        /// Applies the command line's options to the configuration read.
        package var adjust: @Sendable (inout Configuration) -> Void = { _ in }
        /// Checks a file that the configuration names.
        package var check: @Sendable (_ path: String, _ use: FileUse) -> FileProblem? = { _, _ in nil }

        package init() {}
    }

    /// Effect of a change, or of a dry run.
    package struct Outcome: Sendable {
        package let changes: [ConfigurationChange]
        /// The configuration after the change; of a dry run, as it would be.
        package let snapshot: ConfigurationSnapshot
    }

    /// Precondition of a change.
    package typealias Condition = @Sendable (ConfigurationSnapshot) -> Bool

    /// Applies a prepared configuration.
    package typealias Adoption = @Sendable () -> Void
    /// Prepares a configuration for another component, or refuses it.
    package typealias Follower = @Sendable (Configuration) throws(GatewayPlanError) -> Adoption

    package private(set) var snapshot: ConfigurationSnapshot
    /// Settings that the gateway started with.
    private let startDocument: DocumentNode
    /// The settings that the last warning named.
    private var delayedKeys = ""
    private var follower: Follower?
    /// Read at the start.
    private let clusterCertificate: PresentedCertificate?
    private let gateway: Gateway
    private let settings: Settings
    private var last: Task<Void, Never>?

    package init(_ located: LocatedConfiguration, gateway: Gateway, settings: Settings = Settings()) {
        var configuration = located.configuration
        settings.adjust(&configuration)
        self.snapshot = ConfigurationSnapshot(located.document, configuration)
        self.startDocument = located.document
        self.gateway = gateway
        self.settings = settings
        self.clusterCertificate = MaterialAudit(located).clusterCertificate()
        self.use(located)
    }

    nonisolated private func use(_ located: LocatedConfiguration) {
        let cluster = self.clusterCertificate.map { [$0] } ?? []
        self.gateway.use(MaterialAudit(located).certificates() + cluster)
    }

    /// - Parameters:
    ///   - isDryRun: reads and checks everything, and changes nothing. Does not try to bind addresses.
    ///   - condition: evaluated when it is this change's turn.
    package func apply(
        _ edit: ConfigurationEdit, isDryRun: Bool, if condition: @escaping Condition
    ) async -> Result<Outcome, ConfigurationRefusal> {
        await self.exclusively {
            await self.attempt(isDryRun: isDryRun, if: condition) { document throws(ConfigurationRefusal) in
                let result = try edit.apply(to: document)
                do throws(ConfigurationProblems) {
                    return (try ConfigurationReader.read(result.document), result.path)
                } catch {
                    throw .problems(error, entry: result.path)
                }
            }
        }
    }

    /// Reads the file again and applies it, replacing edits made since.
    package func reload(
        isDryRun: Bool = false, if condition: @escaping Condition = { _ in true }
    ) async -> Result<Outcome, ConfigurationRefusal> {
        guard let read = self.settings.read else { return .failure(.noFile) }
        let result = await self.exclusively {
            await self.attempt(isDryRun: isDryRun, if: condition) { _ throws(ConfigurationRefusal) in
                do {
                    return (try read(), .root)
                } catch let problems as ConfigurationProblems {
                    throw .problems(problems, entry: .root)
                } catch {
                    throw .unreadable("\(error)")
                }
            }
        }
        if !isDryRun, case .failure(let refusal) = result { self.gateway.reloadFailed("\(refusal)") }
        return result
    }

    /// Makes `follower` take part in each later change; it replaces an earlier one.
    package func follow(_ follower: @escaping Follower) {
        self.follower = follower
    }

    // MARK: Serialization

    private func exclusively<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) async -> Value {
        let former = self.last
        let task = Task {
            await former?.value
            return await work()
        }
        self.last = Task { _ = await task.value }
        return await task.value
    }

    private func attempt(
        isDryRun: Bool, if condition: Condition,
        _ make: @Sendable (DocumentNode) throws(ConfigurationRefusal) -> (LocatedConfiguration, ConfigurationKeyPath?)
    ) async -> Result<Outcome, ConfigurationRefusal> {
        do throws(ConfigurationRefusal) {
            guard condition(self.snapshot) else { throw .preconditionFailed }
            let (located, entry) = try make(self.snapshot.document)
            let problems = FileAudit(check: self.settings.check).problems(in: located)
            guard problems.isEmpty else { throw .problems(ConfigurationProblems(problems), entry: entry) }
            return .success(try await self.adopt(located, isDryRun: isDryRun))
        } catch {
            return .failure(error)
        }
    }

    private func adopt(
        _ located: LocatedConfiguration, isDryRun: Bool
    ) async throws(ConfigurationRefusal) -> Outcome {
        var configuration = located.configuration
        self.settings.adjust(&configuration)
        let former = self.snapshot
        let next = former.followed(by: located.document, configuration)
        do throws(GatewayPlanError) {
            let adoption = try self.follower?(configuration)
            if isDryRun {
                _ = try GatewayPlan(configuration)
            } else {
                try await self.gateway.reload(configuration)
                adoption?()
                self.snapshot = next
            }
        } catch {
            throw .cannotRun(error)
        }
        let changes = ConfigurationChange.between(former.document, located.document)
        if !isDryRun {
            self.logDelayed(in: located.document)
            self.use(located)
        }
        return Outcome(changes: changes, snapshot: next)
    }

    /// Logs the settings that keep their values until the next start, unless they are the same as before.
    private func logDelayed(in document: DocumentNode) {
        let changes = ConfigurationChange.between(self.startDocument, document).filter { $0.section == nil }
        let keys = changes.flatMap(\.members).filter(\.needsRestart).map(\.path.description).joined(separator: ", ")
        defer { self.delayedKeys = keys }
        guard !keys.isEmpty, keys != self.delayedKeys else { return }
        self.gateway.shared.log.log("changed at the next start only: \(keys)", level: .warning)
    }
}

/// The running configuration at one moment.
package struct ConfigurationSnapshot: Sendable {
    private struct EntryKey: Hashable {
        let section: ConfigurationSection
        let name: String
    }

    package let document: DocumentNode
    package let configuration: Configuration
    /// Grows with each change.
    package let revision: UInt64
    /// When each entry was last changed.
    private let revisions: [EntryKey: UInt64]

    init(_ document: DocumentNode, _ configuration: Configuration) {
        self.document = document
        self.configuration = configuration
        self.revision = 1
        self.revisions = Self.revisions(of: document, 1, former: nil)
    }

    private init(_ document: DocumentNode, _ configuration: Configuration, after former: ConfigurationSnapshot) {
        self.document = document
        self.configuration = configuration
        let isSame = document.isSame(as: former.document)
        self.revision = former.revision + (isSame ? 0 : 1)
        self.revisions = Self.revisions(of: document, self.revision, former: former)
    }

    func followed(by document: DocumentNode, _ configuration: Configuration) -> ConfigurationSnapshot {
        ConfigurationSnapshot(document, configuration, after: self)
    }

    private static func revisions(
        of document: DocumentNode, _ revision: UInt64, former: ConfigurationSnapshot?
    ) -> [EntryKey: UInt64] {
        var revisions: [EntryKey: UInt64] = [:]
        for section in ConfigurationSection.allCases {
            for node in document.elements(section) {
                guard let name = node["name"]?.text else { continue }
                let key = EntryKey(section: section, name: name)
                let isSame = former?.entry(name, in: section)?.isSame(as: node) ?? false
                revisions[key] = isSame ? former?.revisions[key] ?? revision : revision
            }
        }
        return revisions
    }

    package func entry(_ name: String, in section: ConfigurationSection) -> DocumentNode? {
        self.document.index(of: name, in: section).map { self.document.elements(section)[$0] }
    }

    /// `nil` for an unknown entry.
    package func revision(of name: String, in section: ConfigurationSection) -> UInt64? {
        self.revisions[EntryKey(section: section, name: name)]
    }
}
