extension TransferCredential {
    init(reading section: SectionReader<TransferCredentialKey>) {
        let name = section.required(.name, as: .name) ?? ""
        var hosts: [HostPattern] = []
        section.readList(.hosts, into: &hosts, as: .hostPattern)
        if hosts.isEmpty, section.problems.isSound(section.path(.hosts)) {
            section.add(
                .hosts, expected: "the hosts that may be given this credential",
                remedy: "write them like hosts: [files.example]")
        }
        self.init(name: name, hosts: hosts, secret: Self.secret(section))
    }

    private static func secret(_ section: SectionReader<TransferCredentialKey>) -> Secret {
        let user = section.value(.user, as: ValueSyntax<String>.text)
        let password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        let token = KeyPassword(reading: section, text: .token, file: .tokenFile)
        switch (user, password, token) {
        case (let user?, let password?, nil): return .password(user: user, password)
        case (nil, nil, let token?): return .token(token)
        default:
            let isSound = TransferCredentialKey.allCases.allSatisfy { section.problems.isSound(section.path($0)) }
            if isSound {
                section.problems.add(
                    at: section.path, expected: "either a user with a password, or a token",
                    remedy: "add password-file: FILE beside user, or token-file: FILE alone")
            }
            return .token(.text(""))
        }
    }
}
