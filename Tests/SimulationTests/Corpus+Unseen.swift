/// What nobody noted: tables that were rebuilt, renamed, restored, and rows that cannot travel.
extension CorpusCase {
    static let unseen = [
        CorpusCase(
            name: "a column that goes before it was filled holds up nobody (I12)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                0 edit renameColumn 0
                wait 31000
                0 edit restoreTable 0
                """),
        CorpusCase(
            name: "a table that is dropped and made anew is looked at by itself (I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit replaceNote 0
                flow
                1 edit remake 0
                """),
        CorpusCase(
            name: "a rebuild that writes rows of its own sends them (I4)", app: "migrating",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                2 edit rebuildWithout 1
                """),
    ]
}
