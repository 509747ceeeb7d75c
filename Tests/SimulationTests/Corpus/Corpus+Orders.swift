/// Those in which the server assigns ids.
extension CorpusCase {
    static let orders = [
        CorpusCase(
            name: "a delete that found nothing can be lost, too (I10, I12)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit orderAtOnce 0
                flow
                1 edit orderAtOnce 0
                2 sync
                0 sync
                pass 1
                server restore
                pass 1
                0 edit deleteCustomer 926294
                flow
                server restore
                """),
        CorpusCase(
            name: "of two references that a record is brought back with, both get their ids (I4)", app: "order",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                1 edit orderAtOnce 7126410
                pass 0
                1 edit addCustomer 0
                1 edit addCustomer 0
                server restore
                1 edit reassign 6947551
                """),
        CorpusCase(
            name: "the delete of a record that comes back under another id reaches nobody else's (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addCustomer 0
                flow
                1 edit addCustomer 0
                0 edit deleteCustomer 15976139
                server restore
                flow
                server restore
                """),
        CorpusCase(
            name: "ids that are given anew one after the other are not mixed up (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 2
                0 edit orderAtOnce 0
                flow
                1 edit orderAtOnce 0
                0 edit orderAtOnce 11734216
                pass 0
                pass 0
                0 edit orderAtOnce 1
                1 edit addCustomer 0
                0 edit orderAtOnce 0
                pass 1
                pass 1
                server restore
                """),
        CorpusCase(
            name: "a new record whose id was another record's in a lost history is the new one (I4)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit cancel 0
                2 edit orderAtOnce 0
                2 edit cancel 0
                3 edit reassign 0
                1 edit orderAtOnce 0
                0 edit addCustomer 0
                3 edit order 0
                3 edit addCustomer 0
                0 edit deleteCustomer 0
                flow
                1 edit addCustomer 0
                server restore
                1 edit deleteCustomer 8443607
                """),
        CorpusCase(
            name: "what another device's record is called is fetched before its namesake is renamed (I4)", app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit orderAtOnce 0
                flow
                1 clone 2
                server restore
                pass 0
                0 edit orderAtOnce 0
                pass 0
                pass 1
                pass 1
                pass 0
                pass 0 replaced
                """),
        CorpusCase(
            name: "two copies of a file get an id each for one temporary id, and keep their own (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 2 page 50
                1 edit orderAtOnce 0
                flow
                server restore
                1 clone 0
                """),
        CorpusCase(
            name: "what is deleted while its id and its namesake's are given anew stays deleted (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit orderAtOnce 0
                1 edit renameCustomer 0
                1 edit orderTogether 0
                0 edit renameCustomer 0
                flow
                1 edit deleteCustomer 0
                1 edit addCustomer 0
                flow
                0 edit renameCustomer 0
                server node 0 settings 3939129
                0 edit renameCustomer 0
                0 edit orderAtOnce 0
                server restore
                flow
                1 edit orderAtOnce 0
                pass 0 replaced
                1 edit deleteCustomer 0
                """),
        CorpusCase(
            name: "a new record takes the place of one that a restored server does not know any more (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 2
                0 edit orderTogether 0
                1 edit addCustomer 0
                0 edit addCustomer 0
                0 edit deleteCustomer 1
                0 edit orderTogether 0
                0 edit addCustomer 0
                flow
                1 edit renameCustomer 0
                1 edit renameCustomer 0
                1 edit orderTogether 0
                server restore
                """),
        CorpusCase(
            name: "a row that names an id's new holder goes on naming it when the former one moves (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit order 0
                1 edit addCustomer 0
                flow
                server restore
                1 edit orderTogether 0
                pass 0
                pass 0
                pass 0 cut 129
                0 edit order 0
                flow
                0 edit orderAtOnce 0
                """),
        CorpusCase(
            name: "who deletes a row made here has not seen the delete of its namesake (I2)", app: "order",
            script: """
                world seed 1 devices 2 users 1 page 1
                1 edit order 1
                1 edit order 0
                pass 1
                pass 0
                pass 0
                pass 1
                pass 1
                pass 1
                1 edit cancel 0
                pass 0
                0 edit orderAtOnce 0
                pass 0
                pass 0
                pass 0
                0 edit cancel 0
                """),
        CorpusCase(
            name: "versions end with their history, also where a restored server took the same once more (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit orderTogether 0
                pass 0 lost
                1 edit addCustomer 0
                flow
                0 sync
                pass 0
                pass 0
                pass 0 repeated
                server restore
                """),
        CorpusCase(
            name: "and where the answer to an edit came from the restored server before the snapshot did (I4)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit orderTogether 0
                pass 0 lost
                1 edit addCustomer 0
                flow
                server backup
                1 edit addCustomer 0
                flow
                0 sync
                pass 0
                pass 0
                pass 0 repeated
                server restore
                pass 0
                pass 0
                0 edit addCustomer 0
                pass 0
                pass 0 lost
                """),
        CorpusCase(
            name: "what is set aside under a temporary id is kept, whatever the server called it (I5)",
            app: "order",
            script: """
                world seed 1 devices 1 users 1 page 50
                flow
                user 0 scope 0 none
                1 edit orderTogether 0
                pass 0 repeated
                """),
        CorpusCase(
            name: "and so where two of them were made together (I5)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                user 0 scope 0 none
                1 sync
                0 edit orderAtOnce 0
                pass 0
                pass 0 repeated
                """),
        CorpusCase(
            name: "a late answer to a larger request refuses no smaller one (I10)",
            app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                pass 1
                pass 2
                server node 0 settings 107709
                1 edit orderTogether 0
                1 edit orderAtOnce 0
                flow
                wait 2000
                pass 0
                pass 0 old
                """),
        CorpusCase(
            name: "a document that names a record by its first id is no other edit (I1)",
            app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50
                2 edit orderAtOnce 4383463
                2 edit shareAtOnce 7997398
                2 clone 0
                """),
        CorpusCase(
            name: "what is given back with its scope goes by the id that a copy of the file has heard (I12)",
            app: "order",
            script: """
                world seed 1 devices 3 users 1 page 50 hurried
                0 sync
                flow
                0 edit orderTogether 0
                0 edit shareAtOnce 0
                user 0 scope 0 none
                flow
                0 edit shareAtOnce 0
                0 clone 2
                wait 31000
                server node 0 settings 9976429
                2 edit orderTogether 0
                """),
        CorpusCase(
            name: "what is brought back out of another user's file finds the records that it names (I12)", app: "order",
            script: """
                world seed 1 devices 2 users 2 page 50
                1 edit orderTogether 0
                flow
                1 edit order 15963832
                server backup
                flow
                server restore
                1 clone 0
                """),
        CorpusCase(
            name: "an edit of what was made here does not bring it back when somebody has deleted it (I6, I8)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                0 edit orderAtOnce 3175689
                pass 1
                pass 0
                pass 0
                0 edit shareAtOnce 3175689
                pass 0
                pass 0 replaced
                flow
                1 edit cancel 3175689
                """),
        CorpusCase(
            name: "what refers to a record without room does not ask for room again and again (I10)", app: "order",
            script: """
                world seed 1 devices 1 users 1 page 1
                0 edit orderTogether 0
                0 edit orderAtOnce 0
                server node 0 settings 1790936
                0 edit orderAtOnce 1
                flow
                """),
        CorpusCase(
            name: "a verdict that names another record than a page did brings both (I4)", app: "order",
            script: """
                world seed 1 devices 2 users 2 page 50
                user 0 scope 0 read
                0 edit orderTogether 0
                flow
                0 sync
                0 clone 1
                pass 1
                flow
                """),
    ]
}
