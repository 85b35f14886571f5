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
            members: change.members.map { ConfigurationDifferenceMember($0, isAtTop: change.section == nil) })
    }
}

extension ConfigurationDifferenceMember {
    fileprivate init(_ member: ConfigurationChange.Member, isAtTop: Bool) {
        let keys = member.path.steps.compactMap { step in
            if case .key(let name) = step { name } else { nil }
        }
        self.init(
            pointer: member.path.pointer(), from: member.before?.hidingSecrets(below: keys).json(behind: keys.last),
            to: member.after?.hidingSecrets(below: keys).json(behind: keys.last),
            needsRestart: isAtTop && member.needsRestart ? true : nil)
    }
}
