import ControlAPI
import GatewayCore

extension ConfigurationDifference {
    init(_ changes: [ConfigurationChange], applied: Bool) {
        self.init(applied: applied, changes: changes.map { ConfigurationDifferenceItem($0) })
    }
}

extension ConfigurationDifferenceItem {
    fileprivate init(_ change: ConfigurationChange) {
        let resource = change.section.map { "/v1/\($0.rawValue)/\(change.name)" } ?? "/v1/configuration"
        self.init(
            resource: resource, change: change.kind.rawValue,
            members: change.members.map { ConfigurationDifferenceMember($0, in: change.section) })
    }
}

extension ConfigurationDifferenceMember {
    fileprivate init(_ member: ConfigurationChange.Member, in section: ConfigurationSection?) {
        let keys = member.path.steps.compactMap { step in
            if case .key(let name) = step { name } else { nil }
        }
        let whole = section.map { ConfigurationSchema.entry(of: $0) } ?? .section(ConfigurationSchema.whole)
        let form = whole.descend(member.path.steps) ?? .unknown
        self.init(
            pointer: member.path.pointer(), from: member.before.map { form.json($0.hidingSecrets(below: keys)) },
            to: member.after.map { form.json($0.hidingSecrets(below: keys)) },
            needsRestart: section == nil && member.needsRestart ? true : nil)
    }
}
